/**
 * A hundred operations on a fleet, or as many as SVC_FLEET_OPERATIONS says, by four clients, while one in ten meets a fault: mostly
 * kill -9 of an agent, an orchestrator or an edge, sometimes one that stands still, or a cut network. Every sandbox is what its
 * client knows it to be, with its memory. Afterwards nothing is left of them, and the memory and descriptors of every program are
 * back at the base line; the figures are printed. SVC_TEST_SEED=n repeats the choices of a run, though not its moments.
 */

import { randomInt } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRandom } from "../fuzz/random.ts";
import { baseline, expectAtBaseline } from "../support/fleet/base-line.ts";
import { expectGoesOn } from "../support/fleet/counting.ts";
import { openFleet } from "../support/fleet/fleet.ts";
import { insist, stateOf } from "../support/fleet/insist.ts";
import { expectInvariants } from "../support/fleet/invariants.ts";
import { untilFleetReady } from "../support/fleet/ready.ts";
import { removeAllBut } from "../support/fleet/sandboxes.ts";
import { runClient, type Storm } from "../support/fleet/storm.ts";
import { inTurn } from "../support/sandbox/lasting.ts";

const OPERATIONS = Number(process.env["SVC_FLEET_OPERATIONS"] ?? 100);
const SEED = Number(process.env["SVC_TEST_SEED"] ?? randomInt(2 ** 31));
const CLIENTS = 4;
/** Operations before the base line is taken: it has what the programs make once, on first use. */
const WARM_UP = 12;

const fleet = openFleet();

beforeAll(() => untilFleetReady(fleet), 150_000);
afterAll(async () => {
  await untilFleetReady(fleet);
  await removeAllBut(fleet, []);
}, 300_000);

test(
  `${OPERATIONS} operations with faults under one in ten leave every sandbox as it must be, and nothing else`,
  async () => {
    await work(WARM_UP, 0);
    await untilFleetReady(fleet);
    await removeAllBut(fleet, []);
    await expectInvariants(fleet);
    const before = await baseline(fleet);

    const { storm, own } = await work(OPERATIONS, 1);
    const { faults, answers, longestMs } = storm;
    const words = (counts: ReadonlyMap<string, number>) =>
      [...counts]
        .toSorted(([one], [other]) => one.localeCompare(other))
        .map(([what, count]) => `${what}: ${count}`)
        .join(", ");
    console.log(
      [
        `SVC_TEST_SEED=${SEED}; faults: ${words(faults.done)}`,
        `first answers: ${words(answers)}; the longest operation took ${longestMs} ms`,
      ].join("\n"),
    );
    await untilFleetReady(fleet);
    for (const { id, state } of own) {
      for (const [by] of fleet.orchestrators.entries()) expect(await stateOf(fleet, by, id)).toBe(state);
    }
    await inTurn(own, async (one) => {
      await insist(fleet, { kind: "resume", id: one.id }, 0);
      await expectGoesOn(fleet, one, 0);
    });
    await expectInvariants(fleet);
    await removeAllBut(fleet, []);
    await expectInvariants(fleet);
    await expectAtBaseline(fleet, before);
  },
  900_000 + OPERATIONS * 15_000,
);

/** @param round another one makes other choices */
async function work(operations: number, round: number) {
  const faults = { fleet, done: new Map<string, number>(), cutting: false };
  const storm: Storm = { fleet, left: operations, faults, answers: new Map(), longestMs: 0 };
  const clients = Array.from({ length: CLIENTS }, (_, index) => createRandom(SEED, round * CLIENTS + index));
  const own = await Promise.all(clients.map((random) => runClient(storm, random)));
  return { storm, own: own.flat() };
}
