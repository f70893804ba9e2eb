/** Sixty sandboxes of a fleet, made through both orchestrators: each node has its share, and each edge leads to each of them. */

import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openFleet } from "../support/fleet/fleet.ts";
import { insist, madeBy } from "../support/fleet/insist.ts";
import { expectInvariants } from "../support/fleet/invariants.ts";
import { untilFleetReady } from "../support/fleet/ready.ts";
import { idsOn, removeAllBut } from "../support/fleet/sandboxes.ts";
import { inTurn } from "../support/sandbox/lasting.ts";

const SANDBOXES = 60;
const fleet = openFleet();

beforeAll(() => untilFleetReady(fleet));
afterAll(() => removeAllBut(fleet, []));

test("sixty sandboxes are spread over the nodes, and each runs a command through each edge", async () => {
  const made = await inTurn([...Array(SANDBOXES).keys()], async (index) => {
    const { last } = await insist(fleet, { kind: "create", id: "" }, index);
    return madeBy(last)[0] ?? "";
  });
  const mine = new Set(made);
  const counts: number[] = [];
  const count = async () => {
    const there = await Promise.all(fleet.nodes.map(idsOn));
    counts.splice(0, counts.length, ...there.map((ids) => [...ids].filter((id) => mine.has(id)).length));
    return counts.reduce((sum, count) => sum + count, 0);
  };
  // A container from the pool gets its sandbox's name a moment after the start.
  await expect.poll(count, { timeout: 120_000 }).toBe(SANDBOXES);
  // Each of three equal nodes has twenty where the choice is perfect.
  expect(Math.min(...counts), `sandboxes of the nodes: ${counts.join(", ")}`).toBeGreaterThan(SANDBOXES / 6);
  await inTurn(made, async (id) => {
    for (const [index] of fleet.edges.entries()) {
      const sandbox = await Sandbox.connect(id, { ...fleet.sdk(index), timeoutMs: 3_600_000 });
      expect((await sandbox.commands.run(`echo ${id} ${index}`)).stdout).toBe(`${id} ${index}\n`);
    }
  });
  await expectInvariants(fleet);
}, 900_000);
