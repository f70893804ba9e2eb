/** Names the actor of an entry of the audit log. A key has its name beside its mask, because people do not know keys by their masks. Pure. */

import type { AuditEntry } from "../../../shared/api/audit.ts";
import type { TeamApiKey } from "../../../shared/api/teams.ts";

/** Names of the project's keys by their ids. */
export type KeyNames = ReadonlyMap<string, string>;

/** @param changes entries of the audit log about keys, the newest first: a key that was revoked is in no list */
export function namesOf(
  keys: readonly Pick<TeamApiKey, "id" | "name">[],
  changes: readonly Pick<AuditEntry, "object" | "details">[],
): KeyNames {
  const names = new Map<string, string>();
  for (const { object, details } of changes.toReversed()) {
    const { name } = details as { readonly name?: unknown };
    if (object.kind === "key" && object.id !== null && typeof name === "string") names.set(object.id, name);
  }
  for (const { id, name } of keys) names.set(id, name);
  return names;
}

export function whoDid({ kind, id, mask }: AuditEntry["actor"], names: KeyNames): string {
  const name = kind === "key" && id !== null ? names.get(id) : undefined;
  return [kind, name === undefined ? undefined : `‘${name}’`, mask ?? id].filter(Boolean).join(" ");
}
