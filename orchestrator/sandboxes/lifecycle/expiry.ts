/** Ends sandboxes whose time is over: found by an index, re-checked under the move, a bounded number at once. */

import type { Log } from "../../../shared/program/log.ts";
import { loop } from "../../../shared/program/loop.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { SandboxStore } from "../../store/sandboxes/sandboxes.ts";

export interface Expiry {
  /** An end was set: look then, not only at the next round. */
  soon(endAt: number): void;
  stop(): Promise<void>;
}

export interface ExpiryDeps {
  readonly store: Pick<SandboxStore, "expired">;
  /** Kills or pauses it, as it was made; only if its end has really passed. */
  expire(record: SandboxRecord): Promise<unknown>;
  readonly now: () => number;
  readonly log: Log;
  readonly everyMs: number;
  readonly concurrency: number;
  /** Seconds between an end and its being acted on. */
  observe(lagSeconds: number): void;
}

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

export function startExpiry(deps: ExpiryDeps): Expiry {
  const busy = new Map<string, Promise<void>>();
  /** What could not be ended, and when it is tried again. */
  const failed = new Map<string, { readonly waitMs: number; readonly until: number }>();

  async function end(record: SandboxRecord): Promise<void> {
    try {
      deps.observe((deps.now() - record.endAt) / 1000);
      await deps.expire(record);
      failed.delete(record.id);
    } catch (error) {
      const waitMs = Math.min(LONGEST_WAIT_MS, (failed.get(record.id)?.waitMs ?? FIRST_WAIT_MS / 2) * 2);
      failed.set(record.id, { waitMs, until: deps.now() + waitMs });
      deps.log.warn({ err: error, sandboxId: record.id }, "expired sandbox could not be ended");
    } finally {
      busy.delete(record.id);
    }
  }

  const rounds = loop({ name: "expiry", everyMs: deps.everyMs, log: deps.log }, async () => {
    const free = deps.concurrency - busy.size;
    if (free <= 0) return;
    for (const [id, { until }] of failed) if (until + LONGEST_WAIT_MS < deps.now()) failed.delete(id);
    // What is under way or waits for another try stays in the result: ask for more than is free, so that it holds up no one.
    for (const record of await deps.store.expired(deps.now(), deps.concurrency + failed.size)) {
      if (busy.size >= deps.concurrency) break;
      if ((failed.get(record.id)?.until ?? 0) > deps.now()) continue;
      if (!busy.has(record.id)) busy.set(record.id, end(record));
    }
  });

  return {
    soon(endAt) {
      if (endAt <= deps.now()) rounds.wake();
    },
    async stop() {
      await rounds.stop();
      await Promise.all(busy.values());
    },
  };
}
