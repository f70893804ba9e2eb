/**
 * The same histories with two orchestrators on one PostgreSQL database, each of which may die at any step: at most one
 * execution is live, no kill is lost, and every caller gets an answer, whichever of them it asked. Of two that live one at a time works on the sandbox.
 */

import * as fc from "fast-check";
import { afterAll, beforeAll, test } from "vitest";
import { type PostgresServer, startPostgres } from "../../../support/postgres/cluster.ts";
import { newMigratedDatabase } from "../../../support/store/databases.ts";
import { check, checkReasons, operation, run } from "./lifecycle-histories.ts";

let own: PostgresServer | undefined;
let server: string;
beforeAll(async () => {
  const shared = process.env["SVC_TEST_POSTGRES"];
  own = shared === undefined ? await startPostgres() : undefined;
  server = own?.url ?? shared ?? "";
}, 120_000);
afterAll(() => own?.stop(), 60_000);

const newPlace = async () => (await newMigratedDatabase({ folder: "", server })).place;

const asked = fc.record({ operation, at: fc.constantFrom(0, 1) });
/** One thing asked of both, and anything of either. */
const both = operation.map((each) => [0, 1].map((at) => ({ operation: each, at })));
const some = fc.array(asked, { minLength: 1, maxLength: 4 });
const round = fc.oneof({ weight: 2, arbitrary: both }, { weight: 1, arbitrary: some });
const rounds = fc.array(round, { minLength: 1, maxLength: 6 });

test("with faults and crashes of two orchestrators node and records stay consistent", async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), rounds, async (scheduler, list) => {
      const ran = await run(scheduler, list, await newPlace());
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
    { numRuns: Number(process.env.SVC_TEST_RUNS ?? 25) },
  );
}, 600_000);
