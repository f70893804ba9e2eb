/** Each row of the table of faults names existing tests, and each fault has a test that asks what must hold afterwards. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Fault, faults, WITHOUT_INVARIANTS } from "../../faults/table.ts";

/** Each of these ends in `machine/invariants`, the function of `svc doctor`, or adds to it what only a fleet has. */
const ASKS = /\b(expectInvariants|expectNoProblems|findProblems|problemsOnMachine|clusterProblems)\(/;

const sourceOf = ({ file }: Fault) => readFileSync(join(import.meta.dirname, "../..", file), "utf8");

test("every fault has a test of that name", () => {
  const missing = Object.values(faults)
    .flat()
    .filter((one) => !sourceOf(one).includes(one.named ?? ""));
  expect(missing).toEqual([]);
});

test("every fault has a test that asks for the invariants, but for those that say why not", () => {
  const without = Object.entries(faults)
    .filter(([, some]) => !some.some((one) => ASKS.test(sourceOf(one))))
    .map(([fault]) => fault);
  expect(without.toSorted()).toEqual(Object.keys(WITHOUT_INVARIANTS).toSorted());
});
