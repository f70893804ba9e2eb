/** What the page has of a sandbox's log, and what one more reading adds to it. Pure. */

import type { Static } from "typebox";
import type { sandboxApi } from "../../../shared/api/sandboxes/sandboxes.ts";

export type Entry = Static<(typeof sandboxApi.logs)["reply"]>["logs"][number];

/** Lines that the page holds. */
const MOST = 5_000;

/**
 * A reading begins at the moment of the last line, or earlier where another reading has ended first, so some of its lines are
 * there already. The count of equal lines of one moment says how many of them are new.
 * @param read the oldest first
 */
export function merged(old: readonly Entry[], read: readonly Entry[]): readonly Entry[] {
  const last = old.at(-1)?.timestamp;
  if (last === undefined) return read.slice(-MOST);
  const later = read.filter(({ timestamp }) => timestamp > last);
  const there = old.filter(({ timestamp }) => timestamp === last).length;
  const fresh = [...read.filter(({ timestamp }) => timestamp === last).slice(there), ...later];
  return fresh.length === 0 ? old : [...old, ...fresh].slice(-MOST);
}
