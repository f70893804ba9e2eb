/** States to which a sandbox can be put back, and what is lost and kept when it is. Pure. */

import type { SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { span } from "../../base/format.ts";
import type { Snapshot } from "./lineage.ts";

/**
 * The states that a sandbox had before it was a sandbox of its own: of each of its ancestors the snapshot that led to it, and those
 * that are older. The newest first; a snapshot with several names is one.
 * @param origins the snapshot that the sandbox was started from, the one that the sandbox of that snapshot was started from, …
 */
export function earlierStates(origins: readonly Snapshot[], snapshots: readonly Snapshot[]): readonly Snapshot[] {
  const all = origins.flatMap((from) => {
    const older = snapshots.filter(
      ({ sourceSandboxID, createdAt }) =>
        sourceSandboxID !== undefined && sourceSandboxID === from.sourceSandboxID && createdAt < from.createdAt,
    );
    return [from, ...older.filter(({ buildID }) => buildID !== from.buildID)];
  });
  return all
    .filter((each, index) => all.findIndex((other) => other.buildID === each.buildID) === index)
    .toSorted((a, b) => (a.createdAt > b.createdAt ? -1 : 1));
}

export interface RewindFacts {
  readonly sandbox: Pick<SandboxDetail, "sandboxID" | "state" | "volumeMounts">;
  readonly to: Snapshot;
  /** Snapshots of the project. */
  readonly snapshots: readonly Snapshot[];
  readonly now: number;
}

export interface RewindConsequences {
  readonly lost: readonly string[];
  readonly kept: readonly string[];
}

/** What a rewind takes away and what it leaves, in sentences for people who have to decide. */
export function consequencesOf({ sandbox, to, snapshots, now }: RewindFacts): RewindConsequences {
  const { sandboxID, state, volumeMounts = [] } = sandbox;
  const later = snapshots.filter(
    (each) => each.sourceSandboxID === sandboxID && each.buildID !== to.buildID && each.createdAt > to.createdAt,
  );
  const count = new Set(later.map(({ buildID }) => buildID)).size;
  const ago = span(now - Date.parse(to.createdAt));
  return {
    lost: [
      `All that its programs have done in the ${ago} since the snapshot: processes, memory and files.`,
      state === "paused"
        ? "The state with which it was paused. It runs afterwards, for 5 minutes."
        : "Its connections: terminals, requests and streams end, and clients have to connect again.",
    ],
    kept: [
      "Its id, addresses, tokens, network rules and labels.",
      ...(state === "paused" ? [] : ["The time of its end."]),
      ...(volumeMounts.length === 0
        ? []
        : [`Files of its volumes, as they are now: ${volumeMounts.map(({ name }) => name).join(", ")}.`]),
      ...(count === 0 ? [] : [`${count === 1 ? "A snapshot" : `${count} snapshots`} that it took later.`]),
    ],
  };
}
