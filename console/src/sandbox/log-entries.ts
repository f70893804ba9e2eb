/** What the page has of a sandbox's log, and what one more reading adds to it. Pure. */

import type { Static } from "typebox";
import type { SandboxDetail } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import type { sandboxApi } from "../../../shared/api/sandboxes/sandboxes.ts";

export type Entry = Static<(typeof sandboxApi.logs)["reply"]>["logs"][number];

/** What a reading asks for; an empty text: everything. */
export interface Asked {
  readonly level: string;
  readonly search: string;
}

/** Lines that the page holds. */
export const MOST = 5_000;

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

/** Why the page shows no line of the log. */
export function whyNoLines({ level, search }: Asked, state: SandboxDetail["state"]): string {
  const ofLevel = level === "" ? "" : ` of the level ‘${level}’ or above`;
  if (search !== "") return `No line${ofLevel} contains ‘${search}’. The search tells upper case from lower case.`;
  if (level !== "") return `The log has no line${ofLevel}.`;
  return state === "ended"
    ? "No program wrote to the log, or the node no longer keeps it."
    : "No program has written to the log yet.";
}
