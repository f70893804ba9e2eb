/** Who has done something, in words: a key by its name too, because nobody knows whose key a mask is. Pure. */

import type { AuditEntry } from "../../../shared/api/audit.ts";
import type { TeamApiKey } from "../../../shared/api/teams.ts";

/** Names of the project's keys by their ids. A key that was revoked has none. */
export type KeyNames = ReadonlyMap<string, string>;

export function namesOf(keys: readonly Pick<TeamApiKey, "id" | "name">[]): KeyNames {
  return new Map(keys.map(({ id, name }) => [id, name]));
}

export function whoDid({ kind, id, mask }: AuditEntry["actor"], names: KeyNames): string {
  const name = kind === "key" && id !== null ? names.get(id) : undefined;
  return [kind, name === undefined ? undefined : `‘${name}’`, mask ?? id].filter(Boolean).join(" ");
}
