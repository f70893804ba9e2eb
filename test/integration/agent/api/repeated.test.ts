/**
 * Each request of an orchestrator comes to the agent three times, two of them at once: the answers are the same, the effect is one,
 * and nothing contradicts what the machine has. So it is when an answer was lost, or a request waited somewhere.
 */

import { randomUUID } from "node:crypto";
import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { hostVolumes } from "../../../../agent/volumes/volumes.ts";
import { agentApi } from "../../../../shared/agent-api/routes.ts";
import { CLOSED } from "../../../../shared/policy/egress-policy.ts";
import { type AgentInMemory, agentInMemory, problemsOnMachine } from "../../../support/agent/agent-in-memory.ts";
import { startRequest } from "../../../support/fakes/agent-parts.ts";

type Operation = keyof typeof agentApi;
/** A test below, nothing (it changes nothing), or a file of tests below test/ and a part of the test's name. */
type Held = "below" | "reads" | readonly [file: string, named: string];

const AGENT = "integration/agent";

/** Where each operation is sent twice. A new operation has no entry, and the program is not type-correct without one. */
const REPEATED: Readonly<Record<Operation, Held>> = {
  startExecution: "below",
  stopExecution: "below",
  updateExecution: "below",
  replaceEgress: "below",
  pauseExecution: "below",
  checkpointExecution: "below",
  deleteSnapshot: "below",
  serveStore: "below",
  takeBackSnapshot: "below",
  makeVolume: "below",
  deleteVolume: "below",
  fetchSnapshot: [`${AGENT}/snapshots/fetches.test.ts`, "requests for a snapshot on its way share one download"],
  offerSnapshot: [`${AGENT}/snapshots/peers.test.ts`, "a disk that has changed since it was described"],
  offerImage: [`${AGENT}/snapshots/peers.test.ts`, "an image of Docker is offered by its name"],
  fetchImage: [`${AGENT}/snapshots/images.test.ts`, "and the next request tries again"],
  collectBlobs: [`${AGENT}/blobs/collecting.test.ts`, "one collection runs at a time"],
  checkSnapshot: [`${AGENT}/snapshots/checks.test.ts`, "read both copies where this node has one"],
  cancelSnapshotCheck: [`${AGENT}/snapshots/checks.test.ts`, "end when they are cancelled"],
  startBuild: [`${AGENT}/builds/builds.test.ts`, "starting the same build again changes nothing"],
  deleteBuild: [`${AGENT}/builds/builds.test.ts`, "a deleted one never begins"],
  buildState: "reads",
  holdings: "reads",
  listGarbage: "reads",
  examine: "reads",
  listVolumes: "reads",
  executionMetrics: "reads",
  latestMetrics: "reads",
  executionLogs: "reads",
  checkNetwork: "reads",
  networkLog: "reads",
};

/** Sends a request twice at once, and once more afterwards. */
async function thrice<T>(send: () => Promise<T>): Promise<readonly T[]> {
  return [...(await Promise.all([send(), send()])), await send()];
}

/** The times of the parts are those of the request that did the work. */
function expectSame(answers: readonly object[]): void {
  const [first, ...others] = answers.map((answer) => ({ ...answer, times: undefined }));
  for (const other of others) expect(other).toEqual(first);
}

const expectNoProblems = (agent: AgentInMemory) => expect.poll(() => problemsOnMachine(agent)).toEqual([]);
const stepsOf = ({ engine }: AgentInMemory, name: string) => engine.steps.filter((step) => step === name).length;
const withMemory = () => ({ snapshotId: randomUUID(), memory: true });

async function running() {
  const agent = await agentInMemory();
  const executionId = randomUUID();
  const body = startRequest();
  await agent.call.startExecution({ params: { executionId }, body });
  return { agent, body, params: { executionId } };
}

test("every operation of the agent's contract is sent twice by a test of the name that stands here, or changes nothing", async () => {
  expect(Object.keys(REPEATED).toSorted()).toEqual(Object.keys(agentApi).toSorted());
  for (const held of Object.values(REPEATED)) {
    if (typeof held === "string") continue;
    const [file, named] = held;
    expect(await readFile(join(import.meta.dirname, "../../../..", "test", file), "utf8")).toContain(named);
  }
});

test("a start is one container and one answer; when the sandbox has ended, the same request begins nothing", async () => {
  const agent = await agentInMemory();
  const { call, engine, parts } = agent;
  const params = { executionId: randomUUID() };
  const body = startRequest();
  expectSame(await thrice(() => call.startExecution({ params, body })));
  expect(engine.containers.size).toBe(1);
  expect(parts.told).toEqual([`start ${params.executionId}`]);
  await expectNoProblems(agent);
  await call.stopExecution({ params });
  await expect(call.startExecution({ params, body })).rejects.toMatchObject({ code: "conflict" });
  expect(parts.sandboxes.running()).toEqual([]);
  await expectNoProblems(agent);
});

test("a stop kills once, and succeeds each time", async () => {
  const { agent, params } = await running();
  expect(await thrice(() => agent.call.stopExecution({ params }))).toEqual([undefined, undefined, undefined]);
  expect([stepsOf(agent, "signal"), agent.parts.told.filter((one) => one.startsWith("close"))]).toEqual([
    1,
    [`close ${params.executionId}`],
  ]);
  await expect.poll(() => agent.engine.containers.size).toBe(0);
  await expectNoProblems(agent);
});

test("a new end is the end, and the execution stays the same one", async () => {
  const { agent, params } = await running();
  const endAt = Date.now() + 600_000;
  expect(await thrice(() => agent.call.updateExecution({ params, body: { endAt } }))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(agent.parts.sandboxes.running()).toMatchObject([{ executionId: params.executionId, endAt }]);
  expect(agent.parts.stores.executions.all()).toMatchObject([{ endAt }]);
  await expectNoProblems(agent);
});

test("a policy is in force once, with one answer", async () => {
  const { agent, params } = await running();
  expectSame(await thrice(() => agent.call.replaceEgress({ params, body: CLOSED })));
  expect(agent.parts.sandboxes.get(params.executionId)?.egress).toEqual(CLOSED);
  expect([agent.engine.egress.size, agent.engine.firewall.size]).toEqual([1, 1]);
  await expectNoProblems(agent);
});

test("a checkpoint is one snapshot, and its sandbox runs on", async () => {
  const { agent, params } = await running();
  const body = withMemory();
  expectSame(await thrice(() => agent.call.checkpointExecution({ params, body })));
  expect([stepsOf(agent, "dump"), agent.parts.snapshots.list().length]).toEqual([1, 1]);
  expect(agent.parts.sandboxes.running()).toHaveLength(1);
  await expectNoProblems(agent);
});

describe("a pause", () => {
  test("is one snapshot, after which the first start of the sandbox begins nothing", async () => {
    const { agent, body, params } = await running();
    const snapshot = withMemory();
    expectSame(await thrice(() => agent.call.pauseExecution({ params, body: snapshot })));
    expect([stepsOf(agent, "dump"), agent.parts.snapshots.list().length]).toEqual([1, 1]);
    await expect(agent.call.startExecution({ params, body })).rejects.toMatchObject({ code: "conflict" });
    expect(agent.parts.sandboxes.running()).toEqual([]);
    await expectNoProblems(agent);
  });

  test("and its resume come again after each other, and the sandbox that runs stays as it is", async () => {
    const { agent, body, params } = await running();
    const snapshot = withMemory();
    const paused = await agent.call.pauseExecution({ params, body: snapshot });
    const again = { executionId: randomUUID() };
    const origin = { is: "paused" as const, snapshotId: snapshot.snapshotId, memory: true };
    const resume = () => agent.call.startExecution({ params: again, body: { ...body, origin } });
    expectSame(await thrice(resume));
    expectSame([paused, await agent.call.pauseExecution({ params, body: snapshot })]);
    await agent.call.stopExecution({ params });
    expect(agent.parts.sandboxes.running()).toMatchObject([again]);
    expect(agent.engine.containers.size).toBe(1);
    await expectNoProblems(agent);
  });
});

test("a deletion of a snapshot removes it with its container, and succeeds each time", async () => {
  const { agent, params } = await running();
  const snapshot = withMemory();
  await agent.call.pauseExecution({ params, body: snapshot });
  const remove = () => agent.call.deleteSnapshot({ params: { snapshotId: snapshot.snapshotId } });
  expect(await thrice(remove)).toEqual([undefined, undefined, undefined]);
  expect(agent.parts.stores.snapshots.all()).toEqual([]);
  await expect.poll(() => agent.engine.containers.size).toBe(0);
  await expectNoProblems(agent);
});

test("a held snapshot is taken back once, and stays in use", async () => {
  const { agent, params } = await running();
  const { snapshotId } = await agent.call.pauseExecution({ params, body: withMemory() });
  await agent.parts.stored.holding.hold(snapshotId, "because of a test");
  expect(agent.parts.snapshots.list()).toEqual([]);
  await thrice(() => agent.call.takeBackSnapshot({ params: { snapshotId } }));
  expect(agent.parts.snapshots.list()).toMatchObject([{ snapshotId }]);
  await expectNoProblems(agent);
});

test("a store is served from its first request on", async () => {
  const { agent } = await running();
  const body = { storeId: randomUUID(), opening: randomUUID(), mark: 7 };
  await thrice(() => agent.call.serveStore({ body }));
  expect(agent.parts.stores.served.get()).toEqual(body);
  await expectNoProblems(agent);
});

test("a volume is made once and keeps what is in it, and its deletion succeeds each time", async () => {
  const root = await mkdtemp(join(tmpdir(), "svc-repeated-"));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const copies: string[] = [];
  const volumes = hostVolumes({
    root,
    run: async (program, args) => {
      if (program === "cp") {
        const [from = "", to = ""] = args.slice(-2);
        await copyFile(from, to);
        copies.push(to);
      }
      return "";
    },
  });
  const id = randomUUID();
  await thrice(() => volumes.make(id, 64));
  expect([copies.length, volumes.list().map((one) => one.id)]).toEqual([1, [id]]);
  await thrice(() => volumes.remove(id));
  expect(volumes.list()).toEqual([]);
});
