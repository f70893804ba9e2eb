/** The table of API keys: hashes and masks, never a key. */

import { SCOPES, type Scope } from "../../../shared/http/scopes.ts";
import { custom, number, type RecordOf, type RowOf, table, text } from "../codec.ts";

export const keyTable = table(
  {
    id: text("id"),
    name: text("name"),
    maskPrefix: text("mask_prefix"),
    maskSuffix: text("mask_suffix"),
    valueLength: number("value_length"),
    createdAt: number("created_at"),
    lastUsedAt: number("last_used_at").later(),
    /** Comma-separated. */
    scopes: custom("scopes", { read: scopesOf, write: scopesText }),
    /** Undefined: the key does not expire. */
    expiresAt: number("expires_at").optional(),
    /** The credential that made it: `admin`, or the mask of a key. Older keys have none. */
    createdBy: text("created_by").optional(),
  },
  { projectId: text("project_id"), hash: text("hash") },
);

export type KeyRecord = RecordOf<typeof keyTable>;
export type KeyRow = RowOf<typeof keyTable>;

export function scopesOf(stored: string): readonly Scope[] {
  const given = stored.split(",");
  return SCOPES.filter((scope) => given.includes(scope));
}

function scopesText(scopes: readonly Scope[]): string {
  return SCOPES.filter((scope) => scopes.includes(scope)).join(",");
}
