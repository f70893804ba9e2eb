/** Compares a node's report with the records and decides the repairs. Pure; the returned memory holds grace periods. */

import type { LiveExecution, StoredSnapshot } from "../../shared/agent-api/routes.ts";
import type { EndReason } from "../../shared/states/end-reason.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";

export interface Sides {
  readonly nodeId: string;
  readonly reported: readonly LiveExecution[];
  readonly snapshots: readonly StoredSnapshot[];
  /** Ids of reported snapshots that a record or a build needs. */
  readonly wanted: ReadonlySet<string>;
  /** Live records of this node, and the records of sandboxes reported running or by an unwanted snapshot. */
  readonly records: readonly SandboxRecord[];
}

/** When a difference was first seen, by execution id. */
export interface Suspicions {
  readonly orphans: ReadonlyMap<string, number>;
  readonly missing: ReadonlyMap<string, number>;
  /** By snapshot id. */
  readonly strays: ReadonlyMap<string, number>;
}

export interface Grace {
  readonly orphanMs: number;
  readonly missingMs: number;
}

/** A running sandbox that its node has paused without a request. */
interface PausedByNode {
  readonly record: SandboxRecord;
  readonly stored: StoredSnapshot;
}

export interface Plan {
  /** Executions that the node should end: by their records they have ended. */
  readonly stop: readonly string[];
  /** Executions without a record, which the node should pause and hold. */
  readonly hold: readonly LiveExecution[];
  /** Records whose execution is gone. */
  readonly lost: readonly SandboxRecord[];
  readonly pausedByNode: readonly PausedByNode[];
  /** Snapshots that the node should hold, and delete later. */
  readonly deleteSnapshots: readonly StoredSnapshot[];
  /** Paused states of sandboxes whose end was wished for: the node should delete them at once. */
  readonly removeSnapshots: readonly StoredSnapshot[];
  /** Executions whose end time differs on the node, by execution id. */
  readonly endAt: Readonly<Record<string, number>>;
  readonly suspicions: Suspicions;
}

const WISHED_ENDS: ReadonlySet<EndReason> = new Set(["request", "admin", "timeout", "expired"]);

export const noSuspicions: Suspicions = { orphans: new Map(), missing: new Map(), strays: new Map() };

/** Largest difference of end times that count as equal: nodes measure them by their clock since boot. */
const END_TOLERANCE_MS = 1_000;

export function reconcile(sides: Sides, before: Suspicions, grace: Grace, now: number): Plan {
  const records = new Map(sides.records.map((record) => [record.id, record]));
  const stop: string[] = [];
  const hold: LiveExecution[] = [];
  const endAt: Record<string, number> = {};
  const orphans = new Map<string, number>();
  for (const execution of sides.reported) {
    const record = records.get(execution.sandboxId);
    if (record === undefined) {
      // No record: another replica may be writing it, so the execution is not held at once.
      const since = before.orphans.get(execution.executionId) ?? now;
      orphans.set(execution.executionId, since);
      if (now - since >= grace.orphanMs) hold.push(execution);
    } else if (!isCurrent(record, execution) || record.nodeId !== sides.nodeId || isOver(record)) {
      // An older execution of a known sandbox: by the record it has ended.
      stop.push(execution.executionId);
    } else if (record.state === "running" && Math.abs(record.endAt - execution.endAt) > END_TOLERANCE_MS) {
      endAt[execution.executionId] = record.endAt;
    }
  }
  const { pausedByNode, strays, ...unwanted } = reconcileSnapshots(sides, before, grace, now);
  const paused = pausedByNode.map(({ stored }) => stored);
  const reported = new Set([...sides.reported, ...paused].map(({ executionId }) => executionId));
  const missing = new Map<string, number>();
  const lost: SandboxRecord[] = [];
  for (const record of sides.records) {
    if (record.nodeId !== sides.nodeId || record.state !== "running" || reported.has(record.executionId)) continue;
    // The node may have made the report before the start of this execution had ended.
    const since = before.missing.get(record.executionId) ?? now;
    missing.set(record.executionId, since);
    if (now - since >= grace.missingMs) lost.push(record);
  }
  return { stop, hold, lost, endAt, pausedByNode, ...unwanted, suspicions: { orphans, missing, strays } };
}

function reconcileSnapshots(sides: Sides, before: Suspicions, grace: Grace, now: number) {
  const records = new Map(sides.records.map((record) => [record.id, record]));
  const live = new Set(sides.reported.map(({ executionId }) => executionId));
  const pausedByNode: PausedByNode[] = [];
  const deleteSnapshots: StoredSnapshot[] = [];
  const removeSnapshots: StoredSnapshot[] = [];
  const strays = new Map<string, number>();
  // Another replica may be writing the record, and a kill under way deletes the state itself: the snapshot is not held at once.
  const waits = (stored: StoredSnapshot, record: SandboxRecord | undefined, since: number) =>
    now - since < grace.orphanMs || (stored.kind === "pause" && record?.state === "killing" && endedByWish(record));
  for (const stored of sides.snapshots) {
    if (sides.wanted.has(stored.snapshotId)) continue;
    const record = records.get(stored.sandboxId);
    const own =
      stored.kind === "pause" &&
      record !== undefined &&
      record.nodeId === sides.nodeId &&
      record.executionId === stored.executionId;
    if (own && record.state === "running" && !live.has(stored.executionId)) pausedByNode.push({ record, stored });
    // A sandbox in transition: its snapshot is not judged before the transition ends.
    else if (own && !isOver(record) && !live.has(stored.executionId)) continue;
    else {
      const since = before.strays.get(stored.snapshotId) ?? now;
      strays.set(stored.snapshotId, since);
      if (waits(stored, record, since)) continue;
      // The node was away when it was asked to delete the state. What ended by a fault is held, for somebody may miss it.
      if (stored.kind === "pause" && endedByWish(record)) removeSnapshots.push(stored);
      else deleteSnapshots.push(stored);
    }
  }
  return { pausedByNode, deleteSnapshots, removeSnapshots, strays };
}

/** Of a sandbox that is being rewound the former execution may still be there, and the new one already. */
function isCurrent({ executionId, rewind }: SandboxRecord, reported: LiveExecution): boolean {
  return reported.executionId === executionId || reported.executionId === rewind?.executionId;
}

/** Somebody ended the sandbox or is ending it, or a limit that its owner knows. */
function endedByWish(record: SandboxRecord | undefined): boolean {
  const reason = record !== undefined && isOver(record) ? record.end?.reason : undefined;
  return reason !== undefined && WISHED_ENDS.has(reason);
}

function isOver(record: SandboxRecord): boolean {
  return record.state === "gone" || record.state === "killing";
}
