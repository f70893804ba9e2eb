/**
 * The clock of one node of a fleet is ten minutes off: its sandboxes live as long as they were told to, go on through pauses, and
 * operators see the clock. Only the agent's processes get the other time, by Debian's libfaketime (`apt-get install libfaketime`).
 */

import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectGoesOn } from "../support/fleet/counting.ts";
import { type Fleet, type FleetNode, memberPid, openFleet } from "../support/fleet/fleet.ts";
import { insist, stateOf } from "../support/fleet/insist.ts";
import { expectInvariants } from "../support/fleet/invariants.ts";
import { untilBack, untilFleetReady } from "../support/fleet/ready.ts";
import { createOn, removeAllBut } from "../support/fleet/sandboxes.ts";
import { api, asAdmin } from "../support/platform/platform.ts";

const LIBRARY = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
const OFF_S = 600;

const fleet: Fleet = openFleet();
const [node] = fleet.nodes as [FleetNode];

beforeAll(() => untilFleetReady(fleet), 150_000);
afterAll(async () => {
  await untilFleetReady(fleet);
  await removeAllBut(fleet, []);
}, 300_000);

test.each([OFF_S, -OFF_S])(
  "sandboxes of a node whose clock is %i s off live as long as they should, and operators see it",
  async (offS) => {
    const [before] = await createOn(fleet, node, 1);
    if (before === undefined) throw new Error("there is no sandbox");
    await withClock(offS, async () => {
      await expectGoesOn(fleet, before, 0);
      const [stays, ends] = await createOn(fleet, node, 2);
      if (stays === undefined || ends === undefined) throw new Error("there are no sandboxes");
      await expect
        .poll(() => clockFinding(), { timeout: 60_000, interval: 500 })
        .toMatch(/ is (59|60)\d s (ahead|behind)/);
      const endsInS = 40;
      const { status, text } = await api(fleet.through(0), "POST", `/sandboxes/${ends.id}/timeout`, {
        body: { timeout: endsInS },
      });
      expect(status, text).toBe(204);
      await delay((endsInS * 1000) / 2);
      expect(await stateOf(fleet, 1, ends.id)).toBe("running");
      await expect.poll(() => stateOf(fleet, 1, ends.id), { timeout: 120_000, interval: 500 }).toBe("gone");
      await insist(fleet, { kind: "pause", id: stays.id }, 0);
      await expectGoesOn(fleet, stays, 1);
      await expectGoesOn(fleet, before, 1);
      await expectInvariants(fleet);
    });
    await expectGoesOn(fleet, before, 0);
    await expect.poll(() => clockFinding(), { timeout: 60_000, interval: 500 }).toBe("");
    await expectInvariants(fleet);
    await removeAllBut(fleet, []);
  },
  600_000,
);

/** Runs the node's agent with another time; the agent starts again before and after. */
async function withClock(offS: number, work: () => Promise<void>): Promise<void> {
  if (!existsSync(LIBRARY)) throw new Error("this test needs the package libfaketime");
  // The one file of which the lines are in the program's environment, where the loader looks for the library.
  const file = `${node.platform.paths.etc}/node.env`;
  const former = await readFile(file, "utf8").catch(() => undefined);
  const lines = [
    `LD_PRELOAD=${LIBRARY}`,
    `FAKETIME=${offS > 0 ? "+" : ""}${offS}s`,
    "FAKETIME_DONT_FAKE_MONOTONIC=1",
    "DONT_FAKE_MONOTONIC=1",
  ];
  await writeFile(file, `${former ?? ""}\n${lines.join("\n")}\n`, { mode: 0o600 });
  try {
    await restart();
    await work();
  } finally {
    if (former === undefined) await rm(file);
    else await writeFile(file, former, { mode: 0o600 });
    await restart();
  }
}

async function restart(): Promise<void> {
  const former = await memberPid(node);
  process.kill(former, "SIGTERM");
  await untilBack(node, former);
  await untilFleetReady(fleet);
}

/** What the node's report says of its clock; empty: nothing. */
async function clockFinding(): Promise<string> {
  const platform = fleet.through(0);
  const { json } = await api(platform, "GET", `/nodes/${node.id}`, asAdmin(platform));
  const { findings } = json as { findings: { id: string; problem: string }[] };
  return findings.find(({ id }) => id === "node.clock")?.problem ?? "";
}
