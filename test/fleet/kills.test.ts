/**
 * A program of a fleet is killed, one after the other, while sandboxes run on each node: afterwards every sandbox is there with its
 * memory, and records, containers, networks, counts, routes and events agree. An orchestrator dies in the middle of every kind of
 * request that changes something (support/fleet/changes), too. SVC_TEST_MOMENTS=one lets it do so once for each.
 */

import { setTimeout as delay } from "node:timers/promises";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, test } from "vitest";
import { changesUnderKill, type Kill } from "../support/fleet/changes/under-kill.ts";
import { allThere, createCounting, says } from "../support/fleet/counting.ts";
import { type Fleet, type FleetNode, memberPid, openFleet } from "../support/fleet/fleet.ts";
import { ask, insist, type Kind, madeBy, stateOf } from "../support/fleet/insist.ts";
import { expectInvariants } from "../support/fleet/invariants.ts";
import { untilBack, untilFleetReady } from "../support/fleet/ready.ts";
import { createOn, removeAllBut } from "../support/fleet/sandboxes.ts";
import { inTurn, type Lasting } from "../support/sandbox/lasting.ts";

const fleet: Fleet = openFleet();
const [killedNode, otherNode] = fleet.nodes as [FleetNode, FleetNode];
/** Those that must be there after every kill. */
const lasting: Lasting[] = [];

beforeAll(() => untilFleetReady(fleet));
afterAll(async () => {
  await untilFleetReady(fleet);
  await removeAllBut(fleet, []);
}, 600_000);

test("sandboxes start on the node that takes any, and there only", async () => {
  for (const node of [killedNode, otherNode]) lasting.push(...(await createOn(fleet, node, 2)));
}, 600_000);

const MOMENTS: readonly Kill[] = [
  { index: 0, answered: 0.4 },
  { index: 1, answered: 0.1 },
  { index: 0, answered: 0.8 },
];

const kills: readonly { readonly what: string; readonly happens: () => Promise<void> }[] = [
  { what: "an agent was killed and came back", happens: agentKilled },
  { what: "an edge was killed while a stream ran through the other one", happens: edgeKilled },
  ...[
    [0, 20],
    [1, 200],
    [0, 800],
  ].map(([index = 0, afterMs = 0]) => ({
    what: `orchestrator ${index + 1} was killed ${afterMs} ms after one request of each kind had begun`,
    happens: () => orchestratorKilled(index, afterMs),
  })),
  ...(process.env["SVC_TEST_MOMENTS"] === "one" ? MOMENTS.slice(0, 1) : MOMENTS).map((kill) => ({
    what: `orchestrator ${kill.index + 1} was killed when ${kill.answered * 100} % of all the changes of the API were answered`,
    happens: () => killedInChanges(kill),
  })),
];

test.each(kills)(
  "all is in order when $what",
  async ({ happens }) => {
    await happens();
    await untilFleetReady(fleet);
    await allThere(fleet, lasting);
    await expectInvariants(fleet);
  },
  900_000,
);

async function agentKilled(): Promise<void> {
  const former = await memberPid(killedNode);
  process.kill(former, "SIGKILL");
  await untilBack(killedNode, former);
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
  await allThere(fleet, lives, [other]);
  for (const [kind, { last }] of done) {
    if (kind === "create" || kind === "fork") {
      for (const id of madeBy(last)) expect(await says(fleet, id, "echo made")).toBe("made\n");
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

/** Of each change the orchestrators say what was acknowledged, once. */
async function killedInChanges(kill: Kill): Promise<void> {
  await changesUnderKill(fleet, kill);
  await removeAllBut(fleet, lasting);
}
