/** A key in the place of another one: with the same name and scopes, for as long as that one was made for. Pure. */

import type { NewKey, TeamApiKey } from "../../../shared/api/teams.ts";

type Shown = Pick<TeamApiKey, "name" | "mask" | "createdAt" | "scopes" | "expiresAt">;

/** @param now Unix milliseconds */
export function successorOf({ name, scopes, createdAt, expiresAt }: Shown, now: number): NewKey {
  if (expiresAt === undefined || expiresAt === null) return { name, scopes };
  const lifeMs = Date.parse(expiresAt) - Date.parse(createdAt);
  return { name, scopes, expiresAt: new Date(now + lifeMs).toISOString() };
}

/** The key with its middle left out, as the session and the audit log have it. */
export function maskOf({ mask }: Pick<Shown, "mask">): string {
  return `${mask.prefix}${mask.maskedValuePrefix}…${mask.maskedValueSuffix}`;
}

/** What tells the key from all others in the names of its buttons. */
export function titleOf(key: Pick<Shown, "name" | "mask">, keys: readonly Pick<Shown, "name">[]): string {
  const isAlone = keys.filter(({ name }) => name === key.name).length < 2;
  return isAlone ? key.name : `${key.name} …${key.mask.maskedValueSuffix}`;
}
