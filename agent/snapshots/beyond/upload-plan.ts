/** Which snapshots go to the blob store, and when the next try of an upload is due. Pure. */

import type { Build } from "../../store/builds.ts";
import type { Snapshot } from "../../store/snapshots.ts";

/** The last failed try. */
export interface Tried {
  readonly times: number;
  /** Unix milliseconds. */
  readonly at: number;
  readonly message: string;
}

/** Many a paused sandbox is resumed within this time. */
const SETTLED_MS = 15_000;
const FIRST_WAIT_MS = 15_000;
const LONGEST_WAIT_MS = 600_000;

/**
 * A snapshot without a project is of an agent that did not record it: its blobs would have no one to be named for.
 * @param build it is the memory of a template's build, which is in this state
 */
export function toUpload(
  { kind, state, held, resuming, projectId }: Pick<Snapshot, "kind" | "state" | "held" | "resuming" | "projectId">,
  { paused, build }: { readonly paused: boolean; readonly build: Build["state"] | undefined },
): boolean {
  const rests = state === "stored" && !resuming && held === undefined;
  return (
    rests && (build === undefined || build === "ready") && projectId !== undefined && (kind === "checkpoint" || paused)
  );
}

/** A failed try doubles the wait for the next one. */
export function isDue({ takenAt }: { readonly takenAt: number }, tried: Tried | undefined, now: number): boolean {
  if (tried === undefined) return now - takenAt >= SETTLED_MS;
  return now - tried.at >= Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (tried.times - 1));
}
