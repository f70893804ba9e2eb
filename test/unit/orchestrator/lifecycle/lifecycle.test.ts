/**
 * Pauses, resumes, copies, kills, ends, exits, faults of the node and deaths of the process, in any order and interleaving.
 * At most one execution is live, no kill is lost, every waiter gets an answer, no route leads to an ended execution, and
 * every snapshot that a paused sandbox needs is kept.
 */

import * as fc from "fast-check";
import { describe, test } from "vitest";
import { tries } from "../../../support/store/databases.ts";
import { check, checkReasons, operation, peaceful, run } from "./lifecycle-histories.ts";
import type { Operation } from "./lifecycle-world.ts";

/** Rounds of operations, all by the one process. */
const rounds = (of: fc.Arbitrary<Operation>, maxLength: number) =>
  fc.array(
    fc.array(
      of.map((each) => ({ operation: each, at: 0 })),
      { minLength: 1, maxLength: 4 },
    ),
    {
      minLength: 1,
      maxLength,
    },
  );

describe("random interleavings", () => {
  test("with faults and crashes keep the node and the records consistent", async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), rounds(operation, 7), async (scheduler, list) => {
        const ran = await run(scheduler, list);
        try {
          await check(ran);
          await checkReasons(
            ran,
            list.flat().map((each) => each.operation),
          );
        } finally {
          await ran.w.close();
        }
      }),
      { numRuns: tries(Number(process.env.SVC_TEST_RUNS ?? 120)) },
    );
  }, 240_000);

  test("without faults and crashes lose nothing", async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), rounds(peaceful, 4), async (scheduler, list) => {
        const ran = await run(scheduler, list);
        try {
          await check(ran);
          await checkReasons(ran, []);
        } finally {
          await ran.w.close();
        }
      }),
      { numRuns: tries(Number(process.env.SVC_TEST_RUNS ?? 60)) },
    );
  }, 240_000);
});
