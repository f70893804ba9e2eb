/**
 * Deletes paused sandboxes and unused snapshots that are older than their lifetimes, each with an event whose reason is
 * `expired` and a log line. The statement that deletes one checks again that it is old and unused.
 */

import type { Log } from "../../shared/program/log.ts";
import type { Loop } from "../../shared/program/loop.ts";
import type { Ending } from "../lifecycle/ending/kill.ts";
import type { SnapshotRemover } from "../lifecycle/snapshots/snapshot-removal.ts";
import type { Rounds } from "../store/membership/leases.ts";
import type { StoredItem } from "../store/storage/storage.ts";
import type { Store } from "../store/store.ts";
import type { Lifetimes } from "./storage-plan.ts";

export interface StorageExpiryDeps {
  readonly store: Store;
  readonly ending: Ending;
  readonly remover: SnapshotRemover;
  readonly lifetimes: Lifetimes;
  readonly now: () => number;
  readonly log: Log;
  readonly everyMs: number;
  readonly rounds: Rounds;
}

/** Read in one round. */
const BATCH = 100;
/** Ends under way at a time: one whose node does not answer takes the limit of a kill. */
const AT_ONCE = 8;

export function startStorageExpiry({ store, ending, remover, now, log, ...deps }: StorageExpiryDeps): Loop {
  const { pausedMs, snapshotMs } = deps.lifetimes;

  async function endPaused(item: StoredItem, before: number): Promise<void> {
    const { id, projectId, snapshotId, unusedSince: pausedAt } = item;
    try {
      if (!(await ending.expirePaused({ id, snapshotId }, before))) return;
      log.info({ sandboxId: id, projectId, snapshotId, pausedAt, ...item.size }, "deleted an expired paused sandbox");
    } catch (error) {
      log.warn({ err: error, sandboxId: id }, "could not delete an expired paused sandbox yet");
    }
  }

  async function expirePaused(signal: AbortSignal): Promise<void> {
    const before = now() - pausedMs;
    const rest = (await store.storage.pausedBefore({ before, limit: BATCH })).values();
    const worker = async () => {
      for (const item of rest) {
        if (signal.aborted) return;
        await endPaused(item, before);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  async function expireSnapshots(): Promise<void> {
    for (const item of await store.expireSnapshots({ before: now() - snapshotMs, limit: BATCH })) {
      const { projectId, snapshotId, nodeId, templateId, unusedSince } = item;
      if (nodeId !== undefined) remover.removeSoon(nodeId, snapshotId);
      log.info({ snapshotId, projectId, templateId, unusedSince, ...item.size }, "deleted an expired snapshot");
    }
  }

  return deps.rounds({ name: "storage expiry", everyMs: deps.everyMs, log }, async (signal) => {
    if (pausedMs > 0) await expirePaused(signal);
    if (snapshotMs > 0) await expireSnapshots();
  });
}
