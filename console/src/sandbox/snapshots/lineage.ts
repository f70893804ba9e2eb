/**
 * Which sandboxes and snapshots came from a sandbox, and from those. Snapshots name their sandbox, and the event of a sandbox's
 * creation names the snapshot that it was started from. Pure.
 */

import type { Static } from "typebox";
import type { SandboxEvent } from "../../../../shared/api/events.ts";
import type { snapshotApi } from "../../../../shared/api/snapshots.ts";

export type Snapshot = Static<(typeof snapshotApi.listSnapshots)["reply"]>[number];
export type Start = Pick<SandboxEvent, "sandboxId" | "sandboxTemplateId" | "sandboxBuildId" | "timestamp">;

/** A snapshot with all its names, and the sandboxes that were started from it. */
export interface SnapshotNode {
  readonly snapshot: Snapshot;
  /** Every name and tag of it. */
  readonly ids: readonly string[];
  readonly sandboxes: readonly SandboxNode[];
}

export interface SandboxNode {
  readonly id: string;
  readonly startedAt: string | undefined;
  readonly snapshots: readonly SnapshotNode[];
}

/** The oldest first. It ends, because no sandbox starts from a snapshot that was taken of it. */
export function lineageOf(id: string, snapshots: readonly Snapshot[], starts: readonly Start[]): SandboxNode {
  const own = snapshots.filter(({ sourceSandboxID }) => sourceSandboxID === id);
  const nodes = own
    // A snapshot with several names is listed once for each.
    .filter(({ buildID }, index) => own.findIndex((each) => each.buildID === buildID) === index)
    .map((snapshot): SnapshotNode => {
      const begun = starts.filter(({ sandboxBuildId }) => sandboxBuildId === snapshot.buildID);
      const sandboxes = begun.map(({ sandboxId, timestamp }) => ({
        ...lineageOf(sandboxId, snapshots, starts),
        startedAt: timestamp,
      }));
      const ids = own.filter(({ buildID }) => buildID === snapshot.buildID).map(({ snapshotID }) => snapshotID);
      return { snapshot, ids, sandboxes: oldestFirst(sandboxes) };
    });
  return {
    id,
    startedAt: undefined,
    snapshots: nodes.toSorted((a, b) => (a.snapshot.createdAt < b.snapshot.createdAt ? -1 : 1)),
  };
}

function oldestFirst(nodes: readonly SandboxNode[]): readonly SandboxNode[] {
  return nodes.toSorted((a, b) => ((a.startedAt ?? "") < (b.startedAt ?? "") ? -1 : 1));
}
