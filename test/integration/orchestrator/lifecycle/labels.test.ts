/** New sandboxes of what is stored on a node that lacks a label of the project's nodes: they start on one that has it, or not at all. */

import { afterEach, beforeEach, expect, test } from "vitest";
import type { Sandbox } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { type Answer, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";
import { able } from "../../../support/fakes/fake-machine.ts";
import { admin, fetches } from "../nodes/draining.ts";

let cluster: Cluster;
/** The node that made what is started. */
let home: FakeAgent;
let other: FakeAgent;
let source: Sandbox;
beforeEach(async () => {
  cluster = await startCluster({
    agents: 2,
    agent: { heartbeatMs: 0, facts: { capabilities: { ...able, peers: true } } },
    config: { nodeTimeoutMs: 600_000, resumeTimeoutMs: 1_000 },
  });
  const [first, second] = cluster.agents;
  if (first === undefined || second === undefined) throw new Error("the cluster has too few nodes");
  [home, other] = [first, second];
  await setStatus(other, "standby");
  source = await create();
  fetches(other, home);
});
afterEach(() => cluster.stop());

const { create, post, read } = sandboxesOn(() => cluster);
const fork = (count = 1) => cluster.ask("POST", `/sandboxes/${source.sandboxID}/fork`, { body: { count } });

async function setStatus({ nodeId }: FakeAgent, status: "ready" | "standby"): Promise<void> {
  const answer = await cluster.ask("POST", `/nodes/${nodeId}`, { ...admin, body: { status } });
  expect(answer.status, answer.text).toBe(204);
}

/** The project asks for a label, which these nodes have. Both nodes take sandboxes from now on. */
async function label(...nodes: FakeAgent[]): Promise<void> {
  for (const node of nodes) {
    node.facts = { labels: { gpu: "yes" } };
    await node.beat();
  }
  const body = { nodeLabels: { gpu: "yes" } };
  expect((await cluster.ask("PATCH", `/admin/projects/${cluster.teamId}`, { ...admin, body })).status).toBe(200);
  await setStatus(other, "ready");
}

const errorsOf = ({ body }: Answer) =>
  (body as { error?: { error_code: string; message: string } }[]).map(({ error }) => error);

test("a fork stays with its source where that one's node has the labels", async () => {
  await label(home, other);
  const answer = await fork(2);
  expect(errorsOf(answer)).toEqual([undefined, undefined]);
  expect([home.live.size, other.live.size]).toEqual([3, 0]);
  expect(other.fetches).toEqual([]);
});

test("the forks of a sandbox whose node lacks a label start on a node that has it, which fetches their state; the source runs on", async () => {
  await label(other);
  const answer = await fork(2);
  expect(errorsOf(answer)).toEqual([undefined, undefined]);
  expect([home.live.size, other.live.size]).toEqual([1, 2]);
  const [snapshotId] = other.fetches.map((fetch) => fetch.snapshotId);
  expect(other.starts.map(({ body }) => body.origin)).toEqual([
    { is: "snapshot", snapshotId, memory: true },
    { is: "snapshot", snapshotId, memory: true },
  ]);
  expect((await read(source.sandboxID)).state).toBe("running");
});

test("forks that no labelled node can take are refused, and the answer names the label and why", async () => {
  await label(other);
  other.onFetch = () => {
    throw new AppError("snapshot_incompatible", "this machine's processor lacks avx512f");
  };
  const [error] = errorsOf(await fork());
  expect(error).toMatchObject({
    error_code: "no_compatible_node",
    message: expect.stringMatching(
      /node n1, which has .* does not have the label gpu=yes, .*this machine's processor lacks avx512f/,
    ) as string,
  });
  expect([home.live.size, other.live.size]).toEqual([1, 0]);
});

test("a fork whose state takes too long to a labelled node says that a snapshot of the source does not", async () => {
  await label(other);
  other.onFetch = () => ({ here: false, doneBytes: 1, totalBytes: 2 });
  const [error] = errorsOf(await fork());
  expect(error?.message).toContain("take a snapshot of the source, and start sandboxes from that");
  expect([home.live.size, other.live.size]).toEqual([1, 0]);
});

test("a named snapshot on a node that lacks a label starts on one that has it, or the answer says why not", async () => {
  const taken = await post(source.sandboxID, "snapshots", {});
  expect(taken.status, taken.text).toBe(201);
  const { snapshotID } = taken.body as { snapshotID: string };
  await label();
  const start = () => cluster.ask("POST", "/v2/sandboxes", { body: { templateID: snapshotID } });
  const refused = await start();
  expect(refused.body).toMatchObject({
    error_code: "no_compatible_node",
    message: expect.stringMatching(
      /node n1, which has .* does not have the label gpu=yes.*no node has all the labels/,
    ) as string,
  });
  await label(other);
  const answer = await start();
  expect(answer.status, answer.text).toBe(201);
  expect([home.live.size, other.live.size]).toEqual([1, 1]);
});
