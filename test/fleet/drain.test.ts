/**
 * A node with twenty busy sandboxes is drained while a client asks each of them all the time: every one goes on elsewhere in the same
 * memory, and a client sees one stall. The stalls are printed.
 */

import { setTimeout as delay } from "node:timers/promises";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { allThere } from "../support/fleet/counting.ts";
import { type Fleet, type FleetNode, openFleet } from "../support/fleet/fleet.ts";
import { expectInvariants } from "../support/fleet/invariants.ts";
import { untilFleetReady } from "../support/fleet/ready.ts";
import { createOn, idsOn, removeAllBut } from "../support/fleet/sandboxes.ts";
import { api, asAdmin } from "../support/platform/platform.ts";
import { settingOf } from "../support/platform/programs.ts";
import { inTurn, type Lasting } from "../support/sandbox/lasting.ts";

const SANDBOXES = 20;
const fleet: Fleet = openFleet();
const [node] = fleet.nodes as [FleetNode];

interface Moved {
  readonly sandboxID: string;
  readonly state: string;
  readonly toNodeID: string | null;
  readonly stallMs: number | null;
}

interface Watch {
  longestMs: number;
  /** Answers that no client expects of a drain. */
  readonly refused: string[];
}

/** So long a request waits for a sandbox that moves: where it stands still for longer, as on a busy machine, the answer is 409. */
const PATIENCE_MS = Number(settingOf(fleet.through(0), "orchestrator", "SVC_AUTO_RESUME_TIMEOUT_MS", "45000"));

beforeAll(() => untilFleetReady(fleet), 150_000);
afterAll(async () => {
  await api(fleet.through(0), "POST", `/nodes/${node.id}`, {
    ...asAdmin(fleet.through(0)),
    body: { status: "ready" },
  });
  await removeAllBut(fleet, []);
}, 300_000);

test("a drain moves twenty busy sandboxes with their memory, and clients see a stall of each, and a refusal only of one that is longer than a request waits", async () => {
  const all = await createOn(fleet, node, SANDBOXES);
  await inTurn(all, busy);
  const over = new AbortController();
  // Also when the drain fails: the watches would not end by themselves.
  onTestFinished(() => over.abort());
  const watches = all.map(({ id }, index) => watch(id, index, over.signal));
  const platform = fleet.through(0);
  const begun = await api(platform, "POST", `/nodes/${node.id}/drain`, { ...asAdmin(platform), body: {} });
  expect(begun.status, begun.text).toBe(202);
  const look = async () => {
    const { json } = await api(platform, "GET", `/nodes/${node.id}/drain`, asAdmin(platform));
    return json as { state: string; sandboxes: readonly Moved[] };
  };
  const started = Date.now();
  await expect.poll(async () => (await look()).state, { timeout: 600_000, interval: 500 }).toBe("done");
  const tookS = Math.round((Date.now() - started) / 1000);
  const { sandboxes } = await look();
  over.abort();
  const seen = await Promise.all(watches);
  const stalls = sandboxes.map(({ stallMs }) => stallMs ?? 0);
  console.log(
    [
      `${sandboxes.length} sandboxes moved in ${tookS} s; stalls: ${stalls.toSorted((a, b) => a - b).join(", ")} ms`,
      `longest requests: ${seen.map(({ longestMs }) => Math.round(longestMs)).join(", ")} ms`,
    ].join("\n"),
  );
  expect(sandboxes.map(({ state }) => state)).toEqual(Array(SANDBOXES).fill("moved"));
  // Its warm pool stays. What the last sandbox has left there goes a moment after it runs elsewhere.
  const left = async () => {
    const there = await idsOn(node);
    return sandboxes.filter(({ sandboxID }) => there.has(sandboxID));
  };
  await expect.poll(left, { timeout: 60_000, interval: 1_000 }).toEqual([]);
  expect(seen.flatMap(({ refused }) => refused)).toEqual([]);
  await allThere(fleet, all);
  await expectInvariants(fleet);
}, 1_200_000);

/** Leaves it a program that writes to its disk and computes again and again. */
async function busy({ id }: Lasting): Promise<void> {
  const sandbox = await Sandbox.connect(id, { ...fleet.sdk(0), timeoutMs: 3_600_000 });
  const work = "while :; do head -c 200000 /dev/urandom >busy && sha256sum busy >sum; sleep 2; done";
  await (await sandbox.commands.run(work, { background: true, timeoutMs: 0 })).disconnect();
}

/** Reads a file of a sandbox again and again, as a client that waits for each answer. */
async function watch(id: string, index: number, over: AbortSignal): Promise<Watch> {
  const seen: Watch = { longestMs: 0, refused: [] };
  const sandbox = await Sandbox.connect(id, { ...fleet.sdk(index), timeoutMs: 3_600_000 });
  while (!over.aborted) {
    const begun = performance.now();
    try {
      await sandbox.files.read("word.txt", { requestTimeoutMs: 120_000 });
    } catch (error) {
      const waitedMs = performance.now() - begun;
      const gaveUp = waitedMs >= PATIENCE_MS && String(error).includes("409: The sandbox is still transitioning");
      if (!gaveUp) seen.refused.push(`${id}: ${String(error)} after ${Math.round(waitedMs)} ms`);
    }
    seen.longestMs = Math.max(seen.longestMs, performance.now() - begun);
    await delay(500);
  }
  return seen;
}
