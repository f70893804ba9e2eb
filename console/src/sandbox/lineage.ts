/**
 * Which sandboxes and snapshots came from a sandbox, and from those. Snapshots name their sandbox, and the event of a sandbox's
 * creation names the snapshot that it was started from.
 */

import type { SandboxEvent } from "../../../shared/api/events.ts";
import type { snapshotApi } from "../../../shared/api/snapshots.ts";
import { get, pages, type Reply } from "../base/client.ts";

export type Snapshot = Reply<typeof snapshotApi.listSnapshots>[number];
type Start = Pick<SandboxEvent, "sandboxId" | "sandboxTemplateId" | "sandboxBuildId" | "timestamp">;

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

export interface Lineage {
  readonly root: SandboxNode;
  /** The snapshot that the sandbox itself was started from; undefined: a template, or a snapshot that is deleted. */
  readonly from: Snapshot | undefined;
  readonly isWhole: boolean;
}

/** Templates of snapshots whose sandboxes are looked up; a larger tree is shown in part. */
const MOST_TEMPLATES = 40;
const CREATED = "sandbox.lifecycle.created";

export async function loadLineage(id: string, signal: AbortSignal): Promise<Lineage> {
  const [snapshots, own] = await Promise.all([
    pages<Snapshot>("/snapshots", signal),
    get<SandboxEvent[]>(`/events/sandboxes/${encodeURIComponent(id)}`, { limit: 1, orderAsc: true }, signal),
  ]);
  const starts = new Map<string, readonly Start[]>();
  let sandboxes = new Set([id]);
  let isWhole = true;
  // One generation after the other: sandboxes, their snapshots, the sandboxes that were started from these.
  while (sandboxes.size > 0) {
    const due = snapshots
      .filter(({ sourceSandboxID, templateID }) => sandboxes.has(sourceSandboxID ?? "") && !starts.has(templateID))
      .map(({ templateID }) => templateID);
    const templates = [...new Set(due)].slice(0, MOST_TEMPLATES - starts.size);
    isWhole &&= templates.length === new Set(due).size;
    sandboxes = new Set();
    for (const template of templates) {
      const found = await get<Start[]>("/events", { type: CREATED, template, limit: 100 }, signal);
      starts.set(template, found);
      for (const { sandboxId } of found) sandboxes.add(sandboxId);
    }
  }
  const root = lineageOf(id, snapshots, [...starts.values()].flat());
  return { root, from: snapshots.find(({ buildID }) => buildID === own[0]?.sandboxBuildId), isWhole };
}

/** Pure; the oldest first. It ends, because no sandbox starts from a snapshot that was taken of it. */
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
