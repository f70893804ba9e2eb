/** Deletes the records of sandboxes that ended long ago, and old events, also of nodes: a bounded number of records in each round. */

import type { Log } from "../../shared/program/log.ts";
import type { EventStore } from "../store/events/events.ts";
import type { NodeEventStore } from "../store/nodes/node-events.ts";
import type { SandboxStore } from "../store/sandboxes/sandboxes.ts";

export interface ForgettingDeps {
  readonly store: {
    readonly sandboxes: Pick<SandboxStore, "forget">;
    readonly events: Pick<EventStore, "forget">;
    readonly nodeEvents: Pick<NodeEventStore, "forget">;
  };
  /** How long an ended sandbox can be read. */
  readonly endedMs: number;
  /** How long events are kept, and the use of a snapshot by a sandbox that has ended. */
  readonly historyMs: number;
  readonly now: () => number;
  readonly log: Log;
}

/** Time between two rounds that find everything deleted. */
const EVERY_MS = 600_000;
/** Records of one statement, which blocks the others of a SQLite file. */
const BATCH = 500;
const BATCHES = 20;
/** Time for which a record is kept in any case: a node may report an execution of it, which is stopped at once then. */
const LEAST_MS = 3_600_000;

/** One round; it does nothing until it is due. */
export function createForgetting({ store, endedMs, historyMs, now, log }: ForgettingDeps): () => Promise<void> {
  let doneAt = 0;

  /** False: there may be more. */
  async function forgetEnded(): Promise<boolean> {
    const before = now() - Math.max(endedMs, LEAST_MS);
    const old = { before, usesBefore: Math.min(before, now() - historyMs), limit: BATCH };
    let count = 0;
    for (let batch = 0; batch < BATCHES; batch++) {
      const deleted = await store.sandboxes.forget(old);
      count += deleted;
      if (deleted < BATCH) {
        if (count > 0) log.info({ count }, "deleted the records of ended sandboxes");
        return true;
      }
    }
    log.info({ count }, "deleted records of ended sandboxes, more are left");
    return false;
  }

  return async () => {
    if (now() - doneAt < EVERY_MS) return;
    const all = await forgetEnded();
    await store.events.forget(now() - historyMs);
    await store.nodeEvents.forget(now() - historyMs);
    if (all) doneAt = now();
  };
}
