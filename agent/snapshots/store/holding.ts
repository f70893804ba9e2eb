/**
 * The holding place: what reconciliation gives up is kept for a time, in which an operator can take it back, before it is
 * deleted. Each step is logged. A held snapshot is not reported to the orchestrator, and counts as stored.
 */

import { randomUUID } from "node:crypto";
import type { TakenSnapshot, TakeSnapshotBody } from "../../../shared/agent-api/routes.ts";
import { isError } from "../../../shared/http/errors.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { SnapshotStore } from "../../store/snapshots.ts";
import type { Snapshots } from "./snapshots.ts";

interface Pauses {
  pause(executionId: string, request: TakeSnapshotBody): Promise<TakenSnapshot>;
}

export interface HoldingDeps {
  readonly store: Pick<SnapshotStore, "get" | "all" | "hold">;
  readonly snapshots: Pick<Snapshots, "delete">;
  readonly keepMs: number;
  readonly now: () => number;
  readonly log: Log;
}

export interface Holding {
  /** A snapshot that is unknown, held already or being taken stays as it is. Old memory of a sandbox that runs again is deleted. */
  hold(snapshotId: string, reason: string): Promise<void>;
  /** Pauses a running sandbox and holds it. It runs on when it cannot be paused; the next report asks again. */
  holdExecution(executionId: string, reason: string, taker: Pauses): Promise<void>;
  /** One that is not held is success. */
  takeBack(snapshotId: string): void;
  /** Held snapshots, the oldest first. */
  list(): { readonly id: string }[];
  /** Deletes a held snapshot before its time. */
  drop(snapshotId: string, why: string): Promise<void>;
  /** Deletes those whose time has passed. */
  expire(): Promise<void>;
}

export function createHolding({ store, snapshots, keepMs, now, log }: HoldingDeps): Holding {
  const underWay = new Set<string>();

  const hold = async (snapshotId: string, reason: string): Promise<void> => {
    const found = store.get(snapshotId);
    if (found === undefined || found.state === "taking" || found.held !== undefined) return;
    // The sandbox itself runs on; a later pause stores its memory again.
    if (found.state === "spent") return snapshots.delete(snapshotId);
    const held = { since: now(), until: now() + keepMs, reason };
    store.hold(snapshotId, held);
    const { sandboxId, kind } = found;
    log.warn(
      { snapshotId, sandboxId, kind, reason, until: new Date(held.until).toISOString() },
      "no record names a snapshot: it is held, and 'scripts/node take-back' brings it back until then",
    );
  };

  const drop = async (snapshotId: string, why: string): Promise<void> => {
    const found = store.get(snapshotId);
    if (found?.held === undefined) return;
    const { sandboxId, kind, memoryBytes, diskBytes, held } = found;
    log.warn(
      { snapshotId, sandboxId, kind, memoryBytes, diskBytes, reason: held.reason },
      `deleting a held snapshot: ${why}`,
    );
    await snapshots.delete(snapshotId);
  };

  const pauseAny = async (executionId: string, taker: Pauses) => {
    const memory = { snapshotId: randomUUID(), memory: true };
    try {
      return await taker.pause(executionId, memory);
    } catch (error) {
      if (isError(error, "conflict") || isError(error, "sandbox_not_found")) throw error;
      log.warn(
        { err: error, executionId },
        "could not keep the memory of a sandbox without a record, keeping its disk",
      );
      return taker.pause(executionId, { snapshotId: randomUUID(), memory: false });
    }
  };

  return {
    hold,
    async holdExecution(executionId, reason, taker) {
      if (underWay.has(executionId)) return;
      underWay.add(executionId);
      try {
        const { snapshotId } = await pauseAny(executionId, taker);
        await hold(snapshotId, reason);
      } catch (error) {
        // It has ended or another request pauses it: the next report shows which.
        if (!isError(error, "conflict") && !isError(error, "sandbox_not_found")) throw error;
      } finally {
        underWay.delete(executionId);
      }
    },
    takeBack(snapshotId) {
      const found = store.get(snapshotId);
      if (found?.held === undefined) return;
      store.hold(snapshotId, undefined);
      log.info({ snapshotId, sandboxId: found.sandboxId }, "took a snapshot back from the holding place");
    },
    list: () =>
      store
        .all()
        .filter(({ held }) => held !== undefined)
        .sort((a, b) => (a.held?.since ?? 0) - (b.held?.since ?? 0))
        .map(({ id }) => ({ id })),
    drop,
    async expire() {
      const over = store.all().filter(({ held }) => held !== undefined && held.until <= now());
      for (const { id } of over) await drop(id, "its time in the holding place has passed (SVC_HOLD_HOURS)");
    },
  };
}
