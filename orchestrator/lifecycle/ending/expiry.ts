/**
 * Ends sandboxes whose timeout has passed: found by an index, claimed where several orchestrators look, checked again in the
 * move, a bounded number at once.
 */

import { loop } from "../../../shared/program/loop.ts";
import type { Clock } from "../../base/clock.ts";
import { backoffMs } from "../../nodes/retry.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Core } from "../core.ts";

/** Kills or pauses the sandbox, by its `onTimeout`, only if its end has really passed. */
type Expire = (record: SandboxRecord) => Promise<unknown>;

interface Expiry {
  stop(): Promise<void>;
}

export interface ExpiryDeps {
  readonly core: Core;
  readonly expire: Expire;
  readonly everyMs: number;
  readonly concurrency: number;
  /** Sandboxes live as long as they were to, also when this machine's clock is set meanwhile. Absent: another clock counts. */
  readonly clock?: Pick<Clock, "follow">;
  /** Delay in seconds between an end and its execution, for the metrics. */
  observe(lagSeconds: number): void;
}

/** Waits between tries to end a sandbox. */
const BACKOFF = { firstMs: 1_000, longestMs: 60_000 };

export function startExpiry(deps: ExpiryDeps): Expiry {
  const busy = new Map<string, Promise<void>>();
  /** Sandboxes that could not be ended, with the number of failures and the time of the next try. */
  const failed = new Map<string, { readonly failures: number; readonly until: number }>();

  async function end(record: SandboxRecord): Promise<void> {
    try {
      deps.observe((deps.core.now() - record.endAt) / 1000);
      await deps.expire(record);
      failed.delete(record.id);
    } catch (error) {
      const failures = failed.get(record.id)?.failures ?? 0;
      const until = deps.core.now() + backoffMs(failures, BACKOFF, deps.core.random);
      failed.set(record.id, { failures: failures + 1, until });
      deps.core.log.warn({ err: error, sandboxId: record.id }, "could not end an expired sandbox");
    } finally {
      busy.delete(record.id);
    }
  }

  async function moveEnds(ms: number): Promise<void> {
    const { store, log } = deps.core;
    const sandboxes = await store.sandboxes.clockSet(ms);
    // Their next tries are times of the clock as it was.
    failed.clear();
    log.warn({ ms, sandboxes }, "the clock of this machine was set: the ends of sandboxes move with it");
  }

  async function round(): Promise<void> {
    await deps.clock?.follow(moveEnds);
    const free = deps.concurrency - busy.size;
    if (free <= 0) return;
    for (const [id, { until }] of failed) if (until + BACKOFF.longestMs < deps.core.now()) failed.delete(id);
    // Sandboxes that are under way or wait for a retry may be found again: as many more are read, so that others are found.
    const wanted = { now: deps.core.now(), free, known: busy.size + failed.size };
    for (const record of await deps.core.store.sandboxes.expired(wanted)) {
      if (busy.size >= deps.concurrency) break;
      if ((failed.get(record.id)?.until ?? 0) > deps.core.now()) continue;
      if (!deps.core.nodes.mayChange(record.nodeId)) {
        failed.set(record.id, { failures: 0, until: deps.core.now() + BACKOFF.firstMs });
        continue;
      }
      if (!busy.has(record.id)) busy.set(record.id, end(record));
    }
  }

  const rounds = loop({ name: "expiry", everyMs: deps.everyMs, log: deps.core.log }, round);
  deps.core.deadlines.onPassed(() => rounds.wake());
  return {
    async stop() {
      await rounds.stop();
      await Promise.all(busy.values());
    },
  };
}
