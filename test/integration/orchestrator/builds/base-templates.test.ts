/** Builds on top of a template that another node has built: they run on any fit node, which gets the image of that template first. */

import { afterEach, beforeEach, expect, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import { buildingOn, type Requested } from "../../../support/cluster/building.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";
import { able } from "../../../support/fakes/fake-machine.ts";

const TICKET = "f".repeat(64);
const REF = `${"a".repeat(64)}.1`;
const HERE = { here: true, doneBytes: 1, totalBytes: 1 };
const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };

let cluster: Cluster;
/** The node that has built the template below. */
let home: FakeAgent;
let others: FakeAgent[];
let parent: Requested;
beforeEach(async () => {
  cluster = await startCluster({
    agents: 3,
    agent: { heartbeatMs: 0, facts: { capabilities: { ...able, peers: true } } },
    config: { buildPollMs: 20, nodeLostMs: 600_000, nodeTimeoutMs: 600_000, placementTimeoutMs: 100 },
  });
  const [first, ...rest] = cluster.agents;
  if (first === undefined) throw new Error("the cluster has no node");
  [home, others] = [first, rest];
  for (const agent of others) {
    await setStatus(agent, "standby");
    agent.onImageFetch = () => HERE;
  }
  home.onImageOffer = () => ({ ticket: TICKET, projectId: "template", ref: REF, doneBytes: 1, totalBytes: 1 });
  parent = await built("parent");
  for (const agent of others) await setStatus(agent, "ready");
});
afterEach(() => cluster.stop());

const { built, request, start, status } = buildingOn(() => cluster);

async function setStatus({ nodeId }: FakeAgent, wanted: "ready" | "standby"): Promise<void> {
  const answer = await cluster.ask("POST", `/nodes/${nodeId}`, { ...admin, body: { status: wanted } });
  expect(answer.status, answer.text).toBe(204);
}

async function child(): Promise<Requested> {
  const requested = await request({ name: "child" });
  const started = await start(requested, { fromTemplate: "parent" });
  expect(started.status, started.text).toBe(202);
  return requested;
}

const fetches = () => others.flatMap(({ imageFetches }) => imageFetches);
const buildersOf = ({ buildID }: Requested) => cluster.agents.filter(({ builds }) => builds.has(buildID));

test("a build runs on the node that has the template below it while that takes it", async () => {
  const requested = await built("child", { fromTemplate: "parent" });
  expect(buildersOf(requested)).toEqual([home]);
  expect(fetches()).toEqual([]);
});

test("where that node takes no builds, another one fetches the template first, and builds", async () => {
  await setStatus(home, "standby");
  const builtBefore: boolean[] = [];
  for (const agent of others)
    agent.onImageFetch = () => {
      builtBefore.push(agent.buildsAsked.length > 0);
      return HERE;
    };
  const requested = await built("child", { fromTemplate: "parent" });
  const [builder, ...more] = buildersOf(requested);
  expect(others).toContain(builder);
  expect(more).toEqual([]);
  const image = `built:${parent.buildID}`;
  const peer = { nodeId: home.nodeId, url: home.url, ticket: TICKET };
  expect(fetches()).toEqual([{ image, ref: REF, projectId: parent.templateID, peer }]);
  expect(builtBefore).toEqual([false]);
  expect(builder?.buildsAsked[0]?.from).toMatchObject({ is: "build", build: { image } });
});

test("a template that is large is on its way for a while, and the build begins when it has come", async () => {
  await setStatus(home, "standby");
  for (const agent of others) agent.onImageFetch = () => ({ here: false, doneBytes: 1, totalBytes: 500 });
  const requested = await child();
  await expect.poll(() => fetches().length).toBeGreaterThan(2);
  expect(buildersOf(requested)).toEqual([]);
  expect((await status(requested)).status).toBe("building");
  for (const agent of others) agent.onImageFetch = () => HERE;
  await expect.poll(() => status(requested)).toMatchObject({ status: "ready" });
  // The node that had begun to fetch it.
  expect(others.filter(({ imageFetches }) => imageFetches.length > 0)).toEqual(buildersOf(requested));
});

test("where one node cannot fetch the template, another one does", async () => {
  await setStatus(home, "standby");
  const refused: string[] = [];
  for (const agent of others)
    agent.onImageFetch = () => {
      if (refused.length > 0) return HERE;
      refused.push(agent.nodeId);
      throw new AppError("no_space", "the disk has less room than its reserve");
    };
  const requested = await child();
  await expect.poll(() => status(requested)).toMatchObject({ status: "ready" });
  const [builder] = buildersOf(requested);
  expect(others).toContain(builder);
  expect(refused).not.toContain(builder?.nodeId);
});

test("where no node can fetch it, the build fails, and its reason names each node with its own", async () => {
  await setStatus(home, "standby");
  for (const agent of others)
    agent.onImageFetch = () => {
      throw new AppError("no_space", "the disk has less room than its reserve");
    };
  const requested = await child();
  await expect.poll(() => status(requested)).toMatchObject({ status: "error" });
  const { message = "" } = (await status(requested)).reason ?? {};
  expect(message).toContain("none takes it that has the template it is based on");
  expect(message).toContain(`node ${home.nodeId} is standby`);
  for (const { nodeId } of others)
    expect(message).toContain(`node ${nodeId} could not fetch that template: the disk has less room than its reserve`);
  expect(buildersOf(requested)).toEqual([]);
});
