/** Ends sandboxes whose time is over: found by an index, re-checked under the move, a bounded number at once. */

import type { Log } from "../shared/log.ts";
import { loop } from "../shared/loop.ts";
import type { Ending } from "./ending.ts";
import type { SandboxRecord } from "./store/sandbox-record.ts";
import type { SandboxStore } from "./store/sandboxes.ts";

export interface Expiry {
  /** An end was set: look then, not only at the next round. */
  soon(endAt: number): void;
  stop(): Promise<void>;
}

export interface ExpiryDeps {
  readonly store: Pick<SandboxStore, "expired">;
  readonly ending: Pick<Ending, "expire">;
  readonly now: () => number;
  readonly log: Log;
  readonly everyMs: number;
  readonly concurrency: number;
  /** Seconds between an end and its being acted on. */
  observe(lagSeconds: number): void;
}

export function startExpiry(deps: ExpiryDeps): Expiry {
  const busy = new Map<string, Promise<void>>();

  async function end(record: SandboxRecord): Promise<void> {
    try {
      deps.observe((deps.now() - record.endAt) / 1000);
      await deps.ending.expire(record);
    } catch (error) {
      deps.log.warn({ err: error, sandboxId: record.id }, "expired sandbox could not be ended");
    } finally {
      busy.delete(record.id);
    }
  }

  const rounds = loop({ name: "expiry", everyMs: deps.everyMs, log: deps.log }, async () => {
    const free = deps.concurrency - busy.size;
    if (free <= 0) return;
    // One slow sandbox must not hold up the others: what is under way stays in the result, so ask for more than is free.
    for (const record of await deps.store.expired(deps.now(), deps.concurrency)) {
      if (busy.size >= deps.concurrency) break;
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
