/** What a node reports + what the records say → what to repair. Pure; grace periods live in the memory it hands back. */

import type { LiveExecution, StoredSnapshot } from "../../shared/agent-api/routes.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";

export interface Sides {
  readonly nodeId: string;
  readonly reported: readonly LiveExecution[];
  readonly snapshots: readonly StoredSnapshot[];
  /** Ids of reported snapshots that a record or a build needs. */
  readonly wanted: ReadonlySet<string>;
  /** Live records of this node, and the record of every sandbox reported running or by an unwanted snapshot. */
  readonly records: readonly SandboxRecord[];
}

/** Since when something has looked wrong, by execution id. */
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

/** A running sandbox that its node has put to sleep by itself. */
interface Asleep {
  readonly record: SandboxRecord;
  readonly stored: StoredSnapshot;
}

export interface Plan {
  /** Executions the node should end. */
  readonly stop: readonly string[];
  /** Records whose execution is gone. */
  readonly lost: readonly SandboxRecord[];
  readonly asleep: readonly Asleep[];
  /** Snapshots the node should remove. */
  readonly deleteSnapshots: readonly string[];
  /** Ends the node has wrong, by execution id. */
  readonly endAt: Readonly<Record<string, number>>;
  readonly suspicions: Suspicions;
}

export const noSuspicions: Suspicions = { orphans: new Map(), missing: new Map(), strays: new Map() };

/** A node counts boot time differently; less than this is no difference. */
const END_TOLERANCE_MS = 1_000;

export function reconcile(sides: Sides, before: Suspicions, grace: Grace, now: number): Plan {
  const records = new Map(sides.records.map((record) => [record.id, record]));
  const stop: string[] = [];
  const endAt: Record<string, number> = {};
  const orphans = new Map<string, number>();
  for (const execution of sides.reported) {
    const record = records.get(execution.sandboxId);
    if (record === undefined) {
      // Nobody knows it: perhaps a record that is being written by another replica, so not at once.
      const since = before.orphans.get(execution.executionId) ?? now;
      orphans.set(execution.executionId, since);
      if (now - since >= grace.orphanMs) stop.push(execution.executionId);
    } else if (record.executionId !== execution.executionId || record.nodeId !== sides.nodeId || isOver(record)) {
      // Another life of a known sandbox: its own record says that it is over.
      stop.push(execution.executionId);
    } else if (record.state === "running" && Math.abs(record.endAt - execution.endAt) > END_TOLERANCE_MS) {
      endAt[execution.executionId] = record.endAt;
    }
  }
  const { asleep, deleteSnapshots, strays } = sleeping(sides, before, grace, now);
  const paused = asleep.map(({ stored }) => stored);
  const reported = new Set([...sides.reported, ...paused].map(({ executionId }) => executionId));
  const missing = new Map<string, number>();
  const lost: SandboxRecord[] = [];
  for (const record of sides.records) {
    if (record.nodeId !== sides.nodeId || record.state !== "running" || reported.has(record.executionId)) continue;
    // A report may have left the node before the start it does not mention had ended.
    const since = before.missing.get(record.executionId) ?? now;
    missing.set(record.executionId, since);
    if (now - since >= grace.missingMs) lost.push(record);
  }
  return { stop, lost, endAt, asleep, deleteSnapshots, suspicions: { orphans, missing, strays } };
}

function sleeping(sides: Sides, before: Suspicions, grace: Grace, now: number) {
  const records = new Map(sides.records.map((record) => [record.id, record]));
  const live = new Set(sides.reported.map(({ executionId }) => executionId));
  const asleep: Asleep[] = [];
  const deleteSnapshots: string[] = [];
  const strays = new Map<string, number>();
  for (const stored of sides.snapshots) {
    if (sides.wanted.has(stored.snapshotId)) continue;
    const record = records.get(stored.sandboxId);
    const own =
      stored.kind === "pause" &&
      record !== undefined &&
      record.nodeId === sides.nodeId &&
      record.executionId === stored.executionId;
    if (own && record.state === "running" && !live.has(stored.executionId)) asleep.push({ record, stored });
    // The only place of a sandbox that is on its way somewhere: not to be judged before it has arrived.
    else if (own && !isOver(record) && !live.has(stored.executionId)) continue;
    else {
      // Perhaps a record that is being written by another replica, so not at once.
      const since = before.strays.get(stored.snapshotId) ?? now;
      strays.set(stored.snapshotId, since);
      if (now - since >= grace.orphanMs) deleteSnapshots.push(stored.snapshotId);
    }
  }
  return { asleep, deleteSnapshots, strays };
}

function isOver(record: SandboxRecord): boolean {
  return record.state === "gone" || record.state === "killing";
}
