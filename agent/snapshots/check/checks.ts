/**
 * Checks of snapshots in the background, one at a time on this node: reading all of a disk slows down what else it does. The node ends a
 * check that no caller asks about any more, and keeps the result of an ended check for a short time.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { CheckedPart, CheckSnapshotBody, SnapshotCheck } from "../../../shared/agent-api/snapshot-check-shapes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { createSemaphore } from "../../../shared/program/semaphore.ts";
import { toAppError } from "../beyond/arrivals.ts";
import type { CheckOptions } from "./part.ts";

/** An answer waits so long for the end, so that small snapshots need one request. */
const WAIT_MS = 5_000;
const IDLE_MS = 60_000;
const MOST_CHECKS = 64;

export interface SnapshotChecksDeps {
  /** Whether this node has the snapshot, or the image of the template. */
  readonly isHere: (what: What) => boolean;
  /** Reads one copy to its end. */
  readonly check: (what: What, options: CheckOptions) => Promise<CheckedPart[]>;
  /** For tests. */
  readonly waitMs?: number;
  readonly idleMs?: number;
}

/** One copy. The id is that of a build where it is the image of a template. */
interface What extends CheckSnapshotBody {
  readonly snapshotId: string;
}

interface Asked extends What {
  readonly checkId: string;
}

export interface SnapshotChecks {
  /** Begins or joins; answers how far it is. @throws {AppError} why it cannot be checked */
  ask(asked: Asked): Promise<SnapshotCheck>;
  cancel(snapshotId: string, checkId: string): void;
  stop(): Promise<void>;
}

interface Check {
  readonly cut: AbortController;
  readonly idle: NodeJS.Timeout;
  ended: Promise<void>;
  /** It has ended or failed, and is kept for callers who ask for the result. */
  isOver: boolean;
  state: SnapshotCheck["state"];
  doneBytes: number;
  totalBytes: number;
  parts: CheckedPart[];
}

export function createSnapshotChecks(deps: SnapshotChecksDeps): SnapshotChecks {
  const { waitMs = WAIT_MS, idleMs = IDLE_MS } = deps;
  const stopping = new AbortController();
  const turns = createSemaphore(1);
  const checks = new Map<string, Check>();

  async function run(asked: Asked, own: Check): Promise<void> {
    try {
      await inTurn(asked, own);
    } finally {
      own.isOver = true;
    }
  }

  async function inTurn(asked: Asked, own: Check): Promise<void> {
    const signal = AbortSignal.any([stopping.signal, own.cut.signal]);
    const release = await turns.take(signal);
    try {
      own.state = "running";
      own.parts = await deps.check(asked, {
        signal,
        total: (bytes) => {
          own.totalBytes = bytes;
        },
        read: (bytes) => {
          own.doneBytes += bytes;
        },
      });
      own.state = "ended";
    } finally {
      release();
    }
  }

  function forget(key: string): void {
    const own = checks.get(key);
    if (own === undefined) return;
    checks.delete(key);
    clearTimeout(own.idle);
    own.cut.abort(new AppError("conflict", "the check was cancelled"));
  }

  function begin(key: string, asked: Asked): Check {
    if ([...checks.values()].filter(({ isOver }) => !isOver).length >= MOST_CHECKS)
      throw new AppError("unavailable", `this node has ${MOST_CHECKS} checks of snapshots already: ask again later`);
    const own: Check = {
      cut: new AbortController(),
      idle: setTimeout(() => forget(key), idleMs).unref(),
      ended: Promise.resolve(),
      isOver: false,
      state: "waiting",
      doneBytes: 0,
      totalBytes: 0,
      parts: [],
    };
    checks.set(key, own);
    own.ended = run(asked, own);
    // Each request awaits `ended` and gets the failure, a later request too; until then Node must not report it as unhandled.
    own.ended.catch(() => undefined);
    return own;
  }

  return {
    async ask(asked) {
      const { snapshotId, stored } = asked;
      if (stored === undefined && !deps.isHere(asked))
        return { state: "absent", doneBytes: 0, totalBytes: 0, parts: [] };
      const key = keyOf(asked);
      const own = checks.get(key) ?? begin(key, asked);
      own.idle.refresh();
      const patience = new AbortController();
      try {
        await Promise.race([own.ended, delay(waitMs, undefined, { signal: patience.signal })]);
      } catch (error) {
        throw toAppError(`${asked.template === true ? "template build" : "snapshot"} ${snapshotId}`, error);
      } finally {
        patience.abort();
      }
      const { state, doneBytes, totalBytes, parts } = own;
      return { state, doneBytes, totalBytes: state === "ended" ? doneBytes : Math.max(totalBytes, doneBytes), parts };
    },
    cancel(snapshotId, checkId) {
      for (const stored of [false, true]) forget(keyOf({ snapshotId, checkId, stored }));
    },
    async stop() {
      stopping.abort(new AppError("unavailable", "the agent stops"));
      await Promise.allSettled([...checks.values()].map(({ ended }) => ended));
      for (const { idle } of checks.values()) clearTimeout(idle);
    },
  };
}

/** One check reads both copies where this node has one and reads the store too. */
function keyOf({ snapshotId, checkId, stored = false }: Omit<Asked, "stored"> & { readonly stored?: unknown }): string {
  return `${snapshotId} ${checkId} ${stored === false ? "here" : "in the store"}`;
}
