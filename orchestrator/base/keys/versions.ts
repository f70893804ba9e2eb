/**
 * The current key of a purpose, and the earlier ones that stay valid while it is replaced. Records name a key by an id, which
 * reveals nothing of it: keys are random and long.
 */

import { createHash } from "node:crypto";

export interface Versions {
  readonly current: string;
  readonly currentId: string;
  /** For records from before there were ids. */
  readonly oldest: string;
  readonly oldestId: string;
  /** The current key first, the oldest last. */
  readonly all: readonly string[];
  /** Ids of `all`. */
  readonly ids: readonly string[];
  /** Undefined: the key was removed. */
  of(id: string): string | undefined;
}

/**
 * @param purpose part of the ids, so that one key has another id for each purpose
 * @param previous earlier keys, newest first
 */
export function createVersions(purpose: string, current: string, previous: readonly string[]): Versions {
  const idOf = (key: string) => createHash("sha256").update(`${purpose} id\n${key}`).digest("hex").slice(0, 16);
  const all = [current, ...previous];
  const byId = new Map(all.map((key) => [idOf(key), key]));
  const oldest = all.at(-1) ?? current;
  return {
    current,
    currentId: idOf(current),
    oldest,
    oldestId: idOf(oldest),
    all,
    ids: [...byId.keys()],
    of: (id) => byId.get(id),
  };
}
