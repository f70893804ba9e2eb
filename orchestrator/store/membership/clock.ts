/** The database's clock, which all orchestrators share, and how far the clock of this machine is from it. */

import { sql } from "kysely";
import type { Log } from "../../../shared/program/log.ts";

/** The time within a statement of PostgreSQL, in Unix milliseconds: not that of the transaction's beginning, which may be old. */
export const CLOCK = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

export interface DifferenceDeps {
  readonly log: Log;
  /** Called when this machine's clock is another than was known, with what must be added to it. */
  readonly onDifference: (ms: number) => void;
}

/** Clocks are read in whole milliseconds. */
const LEAST_DIFFERENCE_MS = 3;

/** Learns how far this machine's clock is from the database's, no more precisely than an answer takes. */
export function createDifference({ onDifference, log }: DifferenceDeps) {
  let known = 0;
  return {
    /** @param asked.at what the clock of this process said when it asked, with the difference that was known */
    read(database: number, { at, askedMs }: { readonly at: number; readonly askedMs: number }): void {
      // The database read its clock between `at` and `at + askedMs`.
      const off = database < at ? database - at : Math.max(0, database - at - askedMs);
      if (Math.abs(off) < LEAST_DIFFERENCE_MS) return;
      known += off;
      log.warn({ differenceMs: known }, "the clock of this machine is not the database's, which counts");
      onDifference(known);
    },
  };
}
