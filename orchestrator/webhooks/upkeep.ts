/** Bounds the delivery log: old entries, entries beyond a number, and deliveries that a disabled webhook never sent. */

import type { Log } from "../../shared/program/log.ts";
import type { Loop } from "../../shared/program/loop.ts";
import type { Rounds } from "../store/membership/leases.ts";
import type { Store } from "../store/store.ts";
import { RETRY_MS } from "./schedule.ts";

export interface UpkeepDeps {
  readonly store: Store;
  readonly keepMs: number;
  readonly rounds: Rounds;
  readonly now: () => number;
  readonly log: Log;
}

const EVERY_MS = 600_000;
/** Entries of one webhook's log. */
const KEEP = 10_000;
/** Rows of one statement, which blocks the others of a SQLite file. */
const BATCH = 500;

export function startUpkeep({ store, keepMs, rounds, now, log }: UpkeepDeps): Loop {
  return rounds({ name: "webhook log", everyMs: EVERY_MS, log }, async (signal) => {
    while (!signal.aborted && (await store.deliveries.abandon(now() - RETRY_MS, BATCH)) === BATCH);
    const old = { before: now() - keepMs, keep: KEEP, limit: BATCH };
    while (!signal.aborted && (await store.deliveries.forget(old)) > 0);
  });
}
