/**
 * The network between two programs of a fleet is cut for a while, in one direction or in both, or is slow: what has another way
 * goes on meanwhile, and afterwards everything is in order. A node that nobody reaches for longer freezes what runs there.
 */

import { setTimeout as delay } from "node:timers/promises";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, test } from "vitest";
import { storeOf } from "../support/fleet/blob-store.ts";
import { allThere, expectGoesOn } from "../support/fleet/counting.ts";
import {
  type Direction,
  orchestratorsSide,
  othersSide,
  postgresSide,
  type Side,
  sideOf,
  storeSide,
  whileCut,
} from "../support/fleet/cuts.ts";
import { type Fleet, type FleetNode, type Member, openFleet } from "../support/fleet/fleet.ts";
import { ask, insist, madeBy, stateOf } from "../support/fleet/insist.ts";
import { expectInvariants } from "../support/fleet/invariants.ts";
import { untilFleetReady } from "../support/fleet/ready.ts";
import { createOn, idsOn, removeAllBut, untilStored } from "../support/fleet/sandboxes.ts";
import { freezerState } from "../support/platform/frozen.ts";
import { containersOf } from "../support/platform/host-objects.ts";
import { api } from "../support/platform/platform.ts";
import { inTurn, type Lasting } from "../support/sandbox/lasting.ts";

const fleet: Fleet = openFleet();
const store = storeOf(fleet);
const [orchestrator] = fleet.orchestrators as [Member];
const [edge] = fleet.edges as [Member];
const [near, far] = fleet.nodes as [FleetNode, FleetNode];
/** Shorter than a lease, so that nothing is frozen. */
const CUT_MS = 15_000;
let onNear: Lasting[] = [];
let onFar: Lasting[] = [];

beforeAll(() => untilFleetReady(fleet), 150_000);
afterAll(async () => {
  await untilFleetReady(fleet);
  await removeAllBut(fleet, []);
}, 300_000);

test("sandboxes start on two of the nodes", async () => {
  onNear = await createOn(fleet, near, 2);
  onFar = await createOn(fleet, far, 2);
}, 300_000);

interface Pair {
  readonly between: string;
  readonly sides: () => Promise<readonly [Side, Side]>;
  /** What goes on while the pair is cut. */
  readonly meanwhile: () => Promise<void>;
  /** They speak only when a snapshot or an image goes from one to the other. */
  readonly quiet?: boolean;
}

const both = (one: Promise<Side>, other: Promise<Side>) => Promise.all([one, other]);

const pairs: readonly Pair[] = [
  {
    between: "an orchestrator and PostgreSQL",
    sides: () => both(sideOf(orchestrator), postgresSide()),
    meanwhile: () => worksBy(1),
  },
  {
    between: "an orchestrator and a node",
    sides: () => both(sideOf(orchestrator), sideOf(near)),
    meanwhile: () => worksBy(1),
  },
  {
    between: "an edge and the orchestrators",
    sides: () => both(sideOf(edge), orchestratorsSide(fleet)),
    meanwhile: () => goOnBy(0),
  },
  {
    between: "an edge and a node",
    sides: () => both(sideOf(edge), sideOf(near)),
    meanwhile: async () => void (await Promise.all([goOnBy(1), askThrough(0)])),
  },
  {
    between: "two nodes",
    sides: () => both(sideOf(near), sideOf(far)),
    meanwhile: () => worksBy(0),
    quiet: true,
  },
  // There is no network between a node and its directory.
  ...(store.kind === "directory"
    ? []
    : [
        {
          between: "a node and the blob store",
          sides: () => both(sideOf(near), storeSide(store)),
          meanwhile: () => worksBy(0),
          quiet: true,
        },
      ]),
];
const directions: readonly Direction[] = ["both ways", "one way", "the other way", "slow"];

test.each(pairs.flatMap((pair) => directions.map((direction) => ({ ...pair, direction }))))(
  "all is in order after the network between $between was cut: $direction",
  async ({ sides, direction, meanwhile, quiet }) => {
    const work = async () => void (await Promise.all([delay(CUT_MS), meanwhile()]));
    await whileCut(await sides(), direction, work, { quiet });
    await untilFleetReady(fleet);
    await allThere(fleet, [...onNear, ...onFar]);
    await expectInvariants(fleet);
  },
  600_000,
);

/** Every kind of change is done, though perhaps by the other orchestrator, and what was made goes away again. */
async function worksBy(by: number): Promise<void> {
  const [id = ""] = madeBy((await insist(fleet, { kind: "create", id: "" }, by)).last);
  for (const kind of ["pause", "resume", "kill"] as const) await insist(fleet, { kind, id }, by);
}

/** Requests into running sandboxes are answered through an edge, without a question to an orchestrator. */
async function goOnBy(index: number): Promise<void> {
  await inTurn([...onNear, ...onFar], async ({ id, word }) => {
    const sandbox = await Sandbox.connect(id, { ...fleet.sdk(1, index), timeoutMs: 3_600_000 });
    await expect
      .poll(() => sandbox.files.read("word.txt").catch(String), { timeout: 60_000, interval: 500 })
      .toBe(word);
  });
}

/** Asks for a file of each sandbox of the near node; whether that is answered is left open, but not for ever. */
async function askThrough(index: number): Promise<void> {
  await inTurn(onNear, async ({ id }) => {
    const sandbox = await Sandbox.connect(id, { ...fleet.sdk(1, index), timeoutMs: 3_600_000 });
    await sandbox.files.read("word.txt", { requestTimeoutMs: 10_000 }).catch(() => undefined);
  });
}

test("a node that is cut off for longer than its lease freezes what runs there, and an answer lets it go on", async () => {
  const [one] = onNear;
  if (one === undefined) throw new Error("there is no sandbox");
  const others = await othersSide(fleet, near);
  await whileCut([await sideOf(near), others], "both ways", async () => {
    await expect.poll(() => freezerOf(near, one.id), { timeout: 60_000, interval: 500 }).toBe("FROZEN");
    // The others serve meanwhile.
    await worksBy(0);
  });
  await untilFleetReady(fleet);
  await allThere(fleet, onNear);
  await expectInvariants(fleet);
}, 600_000);

test("a node that is cut off for good loses what ran there, and what was stored goes on elsewhere once", async () => {
  const [runs, rests] = (await createOn(fleet, near, 2)) as [Lasting, Lasting];
  await insist(fleet, { kind: "pause", id: rests.id }, 1);
  await untilStored(fleet, rests.id);
  const others = await othersSide(fleet, near);
  await whileCut([await sideOf(near), others], "both ways", async () => {
    await expect.poll(() => stateOf(fleet, 0, runs.id), { timeout: 240_000, interval: 1_000 }).toBe("gone");
    await expect.poll(() => lastEvent(runs.id)).toMatchObject({ eventData: { reason: "node_lost" } });
    expect(await freezerOf(near, runs.id)).toBe("FROZEN");
    await insist(fleet, { kind: "resume", id: rests.id }, 0);
    await expectGoesOn(fleet, rests, 1);
    // A second start of what the cut-off node has is refused or ends on another node, never there.
    expect([201, 200, 409, 503]).toContain((await ask(fleet, 1, { kind: "resume", id: rests.id }))?.status);
  });
  await untilFleetReady(fleet);
  await expect.poll(() => idsOn(near), { timeout: 120_000, interval: 500 }).not.toContain(runs.id);
  await expectGoesOn(fleet, rests, 0);
  await expectInvariants(fleet);
  // What ran on the lost node has ended with it.
  for (const { id } of onNear) expect(await stateOf(fleet, 1, id)).toBe("gone");
}, 900_000);

async function lastEvent(id: string): Promise<unknown> {
  const { json } = await api(fleet.through(1), "GET", `/events/sandboxes/${id}?limit=1`);
  return (json as unknown[])[0];
}

async function freezerOf(node: FleetNode, id: string): Promise<string> {
  const container = (await containersOf(node.platform)).find(({ name }) => name === `svc-${id}`);
  return container === undefined ? "no container" : freezerState(container.id);
}
