/**
 * A part of a fleet hangs, restarts or is gone, one after the other, while sandboxes run on each node: afterwards every sandbox is
 * there with its memory, but for those of a machine that is gone, and records, containers, networks, counts, routes and events agree.
 */

import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { storeFindings, storeOf } from "../support/fleet/blob-store.ts";
import { allThere, says } from "../support/fleet/counting.ts";
import { type Fleet, type FleetNode, memberPid, openFleet, postgresPid } from "../support/fleet/fleet.ts";
import { ask, insist, madeBy, stateOf } from "../support/fleet/insist.ts";
import { expectInvariants } from "../support/fleet/invariants.ts";
import { endForGood, untilFleetReady } from "../support/fleet/ready.ts";
import { createOn, idsOn, removeAllBut, storageOf, untilStored } from "../support/fleet/sandboxes.ts";
import { api } from "../support/platform/platform.ts";
import type { Lasting } from "../support/sandbox/lasting.ts";

const fleet: Fleet = openFleet();
const [stoppedNode, otherNode, goneNode] = fleet.nodes as [FleetNode, FleetNode, FleetNode];
/** Those that must be there after every fault. */
let lasting: Lasting[] = [];

beforeAll(() => untilFleetReady(fleet), 150_000);
afterAll(async () => {
  await untilFleetReady(fleet);
  await removeAllBut(fleet, []);
}, 300_000);

test("sandboxes start on the node that takes any, and there only", async () => {
  for (const node of [stoppedNode, otherNode]) lasting.push(...(await createOn(fleet, node, 2)));
}, 300_000);

interface Absence {
  readonly what: string;
  readonly happens: () => Promise<void>;
}

const absences: readonly Absence[] = [
  { what: "an agent stood still for 30 s", happens: agentStopped },
  { what: "an agent was gone for good, and came back after all", happens: agentGone },
  { what: "PostgreSQL was killed", happens: postgresKilled },
  { what: "the blob store was away and came back", happens: storeAway },
];

test.each(absences)(
  "all is in order when $what",
  async ({ happens }) => {
    await happens();
    await untilFleetReady(fleet);
    await allThere(fleet, lasting);
    await expectInvariants(fleet);
  },
  600_000,
);

/** A node that hangs keeps nobody else waiting for ever, and goes on where it was. */
async function agentStopped(): Promise<void> {
  const there = await idsOn(stoppedNode);
  const pid = await memberPid(stoppedNode);
  const over = delay(30_000);
  process.kill(pid, "SIGSTOP");
  try {
    const elsewhere = lasting.filter(({ id }) => !there.has(id));
    for (const [index] of fleet.orchestrators.entries()) {
      await allThere(fleet, elsewhere, [index]);
      const made = await insist(fleet, { kind: "create", id: "" }, index);
      for (const id of madeBy(made.last)) await insist(fleet, { kind: "kill", id }, 1 - index);
    }
    await over;
  } finally {
    process.kill(pid, "SIGCONT");
  }
  expect(await memberPid(stoppedNode)).toBe(pid);
}

/** What ran there is lost, with an event; what was paused and stored goes on elsewhere, and runs nowhere twice. */
async function agentGone(): Promise<void> {
  const [runs, ...rests] = await createOn(fleet, goneNode, 3);
  if (runs === undefined) throw new Error("no sandbox was made");
  for (const { id } of rests) await insist(fleet, { kind: "pause", id }, 1);
  for (const { id } of rests) await untilStored(fleet, id);
  const comesBack = await endForGood(goneNode);
  try {
    await expect.poll(() => stateOf(fleet, 0, runs.id), { timeout: 150_000, interval: 1_000 }).toBe("gone");
    const killed = { type: "sandbox.lifecycle.killed", eventData: { reason: "node_lost" } };
    await expect.poll(() => lastEvent(runs.id)).toMatchObject(killed);
    for (const [index, { id }] of rests.entries()) await insist(fleet, { kind: "resume", id }, index);
    await allThere(fleet, [...rests, ...lasting], [1]);
    await expectInvariants(fleet, { gone: goneNode });
  } finally {
    await comesBack();
  }
  await untilFleetReady(fleet);
  lasting = [...lasting, ...rests];
  // The node has been told of all that it missed.
  await expect.poll(() => idsOn(goneNode), { timeout: 60_000, interval: 500 }).not.toContain(runs.id);
}

async function lastEvent(id: string): Promise<unknown> {
  const { json } = await api(fleet.through(1), "GET", `/events/sandboxes/${id}?limit=1`);
  return (json as unknown[])[0];
}

/** What was answered stays, and what was on its way is finished or undone. */
async function postgresKilled(): Promise<void> {
  const first = await postgresPid();
  const creating = [0, 1, 0, 1].map((by) => ask(fleet, by, { kind: "create", id: "" }));
  await delay(300);
  process.kill(first, "SIGKILL");
  const said = await Promise.all(creating);
  await expect.poll(() => postgresPid().catch(() => first), { timeout: 60_000, interval: 100 }).not.toBe(first);
  await untilFleetReady(fleet);
  for (const reply of said) {
    if (reply?.status !== 201) continue;
    for (const id of madeBy(reply)) expect(await says(fleet, id, "echo kept")).toBe("kept\n");
  }
  await removeAllBut(fleet, lasting);
}

/** Pauses and resumes need no store; what was to go there waits, says so, and goes when it is back. */
async function storeAway(): Promise<void> {
  const [one] = lasting;
  if (one === undefined) throw new Error("there is no sandbox");
  const comesBack = await storeOf(fleet).goAway();
  try {
    await insist(fleet, { kind: "pause", id: one.id }, 0);
    await expect.poll(nodesWithout, { timeout: 90_000, interval: 1_000 }).not.toEqual([]);
    const waits = { inStore: false, upload: { failure: expect.stringMatching(/^the store /) as string } };
    await expect.poll(() => storageOf(fleet, one.id), { timeout: 120_000, interval: 1_000 }).toMatchObject(waits);
    const shown = { inStore: false, ifNodeIsLost: expect.stringContaining("failed, and is tried again") as string };
    await expect.poll(() => placeOf(one.id), { timeout: 30_000, interval: 1_000 }).toMatchObject(shown);
    await insist(fleet, { kind: "resume", id: one.id }, 1);
    await allThere(fleet, [one], [1]);
    await insist(fleet, { kind: "pause", id: one.id }, 1);
  } finally {
    await comesBack();
  }
  await untilStored(fleet, one.id);
  expect(await placeOf(one.id)).toMatchObject({ inStore: true, upload: null });
  await expect.poll(nodesWithout, { timeout: 90_000, interval: 1_000 }).toEqual([]);
}

/** Ids of the nodes that say that they cannot use the blob store. */
async function nodesWithout(): Promise<readonly string[]> {
  return [...(await storeFindings(fleet.through(0))).keys()];
}

/** Where a paused sandbox is, as its owner sees it. */
async function placeOf(id: string): Promise<unknown> {
  const { json } = await api(fleet.through(1), "GET", `/sandboxes/${id}`);
  return (json as { place?: unknown }).place;
}
