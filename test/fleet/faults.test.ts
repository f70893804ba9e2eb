/**
 * One fault of a fleet after the other, while sandboxes run on each node: afterwards every sandbox is there with its memory, but
 * for those of a machine that is gone, and records, containers, networks, counts, routes and events agree.
 */

import { rename } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createCounting, expectGoesOn } from "../support/fleet/counting.ts";
import { BLOBS, type Fleet, type FleetNode, memberPid, openFleet, postgresPid } from "../support/fleet/fleet.ts";
import { ask, insist, type Kind, madeBy, stateOf } from "../support/fleet/insist.ts";
import { expectInvariants } from "../support/fleet/invariants.ts";
import { endForGood, untilBack, untilFleetReady } from "../support/fleet/ready.ts";
import { createOn, idsOn, removeAllBut, untilStored } from "../support/fleet/sandboxes.ts";
import { api, asAdmin } from "../support/platform/platform.ts";
import { inTurn, type Lasting } from "../support/sandbox/lasting.ts";

const fleet: Fleet = openFleet();
const [killedNode, stoppedNode, goneNode] = fleet.nodes as [FleetNode, FleetNode, FleetNode];
/** Those that must be there after every fault. */
let lasting: Lasting[] = [];

beforeAll(() => untilFleetReady(fleet), 150_000);
afterAll(async () => {
  await untilFleetReady(fleet);
  await removeAllBut(fleet, []);
}, 300_000);

test("sandboxes start on the node that takes any, and there only", async () => {
  for (const node of [killedNode, stoppedNode]) lasting.push(...(await createOn(fleet, node, 2)));
}, 300_000);

interface Fault {
  readonly what: string;
  readonly happens: () => Promise<void>;
}

const faults: readonly Fault[] = [
  { what: "an agent was killed and came back", happens: agentKilled },
  { what: "an agent stood still for 30 s", happens: agentStopped },
  { what: "an agent was gone for good, and came back after all", happens: agentGone },
  { what: "an edge was killed while a stream ran through the other one", happens: edgeKilled },
  { what: "PostgreSQL was killed", happens: postgresKilled },
  ...[
    [0, 20],
    [1, 200],
    [0, 800],
  ].map(([index = 0, afterMs = 0]) => ({
    what: `orchestrator ${index + 1} was killed ${afterMs} ms after one request of each kind had begun`,
    happens: () => orchestratorKilled(index, afterMs),
  })),
  { what: "the blob store was away and came back", happens: storeAway },
];

test.each(faults)(
  "all is in order when $what",
  async ({ happens }) => {
    await happens();
    await untilFleetReady(fleet);
    for (const [index] of fleet.orchestrators.entries()) await allThere(lasting, index);
    await expectInvariants(fleet);
  },
  600_000,
);

async function allThere(some: readonly Lasting[], by: number): Promise<void> {
  await inTurn(some, (one) => expectGoesOn(fleet, one, by));
}

async function agentKilled(): Promise<void> {
  const former = await memberPid(killedNode);
  process.kill(former, "SIGKILL");
  await untilBack(killedNode, former);
}

/** A node that hangs keeps nobody else waiting for ever, and goes on where it was. */
async function agentStopped(): Promise<void> {
  const there = await idsOn(stoppedNode);
  const pid = await memberPid(stoppedNode);
  const over = delay(30_000);
  process.kill(pid, "SIGSTOP");
  try {
    const elsewhere = lasting.filter(({ id }) => !there.has(id));
    for (const [index] of fleet.orchestrators.entries()) {
      await allThere(elsewhere, index);
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
    expect(await lastEvent(runs.id)).toMatchObject({
      type: "sandbox.lifecycle.killed",
      eventData: { reason: "node_lost" },
    });
    for (const [index, { id }] of rests.entries()) await insist(fleet, { kind: "resume", id }, index);
    await allThere([...rests, ...lasting], 1);
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

/** Requests that the dead orchestrator left are repeated at the other one, until they are done. */
async function orchestratorKilled(index: number, afterMs: number): Promise<void> {
  const other = 1 - index;
  const victim = fleet.orchestrators[index];
  if (victim === undefined) throw new Error(`there is no orchestrator ${index}`);
  const kinds = ["pause", "resume", "kill", "fork", "snapshot"] as const;
  const boxes = await inTurn([...kinds], () => createCounting(fleet, other));
  const works = [
    ...boxes.map(({ id }, number) => ({ kind: (kinds[number] ?? "kill") as Kind, id })),
    { kind: "create" as const, id: "" },
  ];
  const toResume = works.find(({ kind }) => kind === "resume")?.id ?? "";
  await insist(fleet, { kind: "pause", id: toResume }, other);

  // Looked up before: it takes longer than many a request.
  const pid = await memberPid(victim);
  const first = works.map((work) => ask(fleet, index, work));
  await delay(afterMs);
  process.kill(pid, "SIGKILL");
  const answers = await Promise.all(first);
  console.log(works.map(({ kind }, number) => `${kind}: ${answers[number]?.status ?? "no answer"}`).join(", "));
  const done = await Promise.all(
    works.map(
      async (work, number) => [work.kind, await insist(fleet, work, index, Promise.resolve(answers[number]))] as const,
    ),
  );

  const lives = boxes.filter((_, number) => kinds[number] !== "kill");
  const killed = boxes.find((_, number) => kinds[number] === "kill");
  expect(await stateOf(fleet, other, killed?.id ?? "")).toBe("gone");
  expect(await stateOf(fleet, other, boxes[kinds.indexOf("pause")]?.id ?? "")).toBe("paused");
  await allThere(lives, other);
  for (const [kind, { last }] of done) {
    if (kind === "create" || kind === "fork") {
      for (const id of madeBy(last)) expect(await says(id, "echo made")).toBe("made\n");
    }
    if (kind === "snapshot") {
      const { snapshotID } = last.json as { snapshotID: string };
      const copy = await Sandbox.create(snapshotID, { ...fleet.sdk(other), timeoutMs: 300_000 });
      const word = boxes[kinds.indexOf("snapshot")]?.word;
      expect(await copy.files.read("word.txt")).toBe(word);
    }
  }
  await untilBack(victim, pid);
  await removeAllBut(fleet, lasting);
}

async function says(id: string, command: string): Promise<string> {
  const sandbox = await Sandbox.connect(id, { ...fleet.sdk(1), timeoutMs: 300_000 });
  return (await sandbox.commands.run(command)).stdout;
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
    for (const id of madeBy(reply)) expect(await says(id, "echo kept")).toBe("kept\n");
  }
  await removeAllBut(fleet, lasting);
}

async function edgeKilled(): Promise<void> {
  const [victim] = fleet.edges;
  const [one] = lasting;
  if (victim === undefined || one === undefined) throw new Error("there is no edge, or no sandbox");
  const sandbox = await Sandbox.connect(one.id, { ...fleet.sdk(0, 1), timeoutMs: 3_600_000 });
  const counted = sandbox.commands.run("for i in $(seq 1 50); do echo $i; sleep 0.1; done");
  await delay(1_000);
  const former = await memberPid(victim);
  process.kill(former, "SIGKILL");
  expect((await counted).stdout.trim().split("\n")).toHaveLength(50);
  await untilBack(victim, former);
}

/** Pauses and resumes need no store; what was to go there goes when it is back. */
async function storeAway(): Promise<void> {
  const [one] = lasting;
  if (one === undefined) throw new Error("there is no sandbox");
  await rename(BLOBS, `${BLOBS}-away`);
  try {
    await insist(fleet, { kind: "pause", id: one.id }, 0);
    await expect.poll(findings, { timeout: 90_000, interval: 1_000 }).toContain("blobs.store");
    await insist(fleet, { kind: "resume", id: one.id }, 1);
    await allThere([one], 1);
    await insist(fleet, { kind: "pause", id: one.id }, 1);
  } finally {
    await rename(`${BLOBS}-away`, BLOBS);
  }
  await untilStored(fleet, one.id);
  await expect.poll(findings, { timeout: 90_000, interval: 1_000 }).not.toContain("blobs.store");
}

/** Ids of what the nodes say is wrong with them. */
async function findings(): Promise<readonly string[]> {
  const platform = fleet.through(0);
  const { json } = await api(platform, "GET", "/nodes", asAdmin(platform));
  return (json as { findings: { id: string }[] }[]).flatMap(({ findings: some }) => some.map(({ id }) => id));
}
