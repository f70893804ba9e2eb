/** An operator removes a node: it is refused while something is on it, and what is lost with it has its events. */

import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { BLOB_PERIOD_MS } from "../../../../shared/agent-api/blobs/blob-refs.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { admin, joinCluster, newJoinToken, startMember } from "../../../support/cluster/members.ts";
import { silentPort } from "../../../support/peers/listening.ts";

let cluster: Cluster;
beforeEach(async () => {
  // Its nodes are not silent for too long, however slow the machine is.
  cluster = await startCluster({ agents: 0, config: { nodesPort: 0, nodeTimeoutMs: 600_000, nodeLostMs: 600_000 } });
});
afterEach(() => cluster.stop());

const NOTHING = { pausedSandboxes: 0, snapshots: 0, templates: 0 };
const remove = (nodeId: string, query = "") => cluster.ask("DELETE", `/nodes/${nodeId}${query}`, admin);
const nodes = async () => ((await cluster.ask("GET", "/nodes", admin)).body as { id: string }[]).map(({ id }) => id);

async function create(): Promise<string> {
  const made = await cluster.ask("POST", "/sandboxes", { body: { templateID: "base" } });
  expect(made.status, made.text).toBe(201);
  return (made.body as { sandboxID: string }).sandboxID;
}

interface Event {
  readonly type: string;
  readonly sandboxId: string;
  readonly eventData: Readonly<Record<string, unknown>>;
}

async function events(): Promise<Event[]> {
  return (await cluster.ask("GET", "/events/sandboxes?limit=100")).body as Event[];
}

test("an empty node goes at once: its key opens nothing any more, and its name is free", async () => {
  const machine = await joinCluster(cluster);
  const agent = await startMember(cluster, machine, { heartbeatMs: 0 });
  const removed = await remove(agent.nodeId);
  expect([removed.status, removed.body]).toEqual([
    200,
    { sandboxes: 0, pausedSandboxes: 0, snapshots: 0, volumes: 0, templates: 0, inStore: NOTHING },
  ]);
  expect(await nodes()).toEqual([]);
  await expect(agent.beat()).rejects.toThrow(
    `node '${agent.nodeId}' is not on this platform any more: join the platform again with a new token`,
  );
  await joinCluster(cluster, { nodeId: agent.nodeId, joinToken: await newJoinToken(cluster) });
});

test("a report that is under way when its node is removed does not bring it back", async () => {
  // The report waits for the call back, which nobody answers.
  const facts = { apiUrl: `https://127.0.0.1:${await silentPort()}` };
  const agent = await startMember(cluster, await joinCluster(cluster), { facts, heartbeatMs: 0 });
  const reported = agent.beat().then(
    () => "taken",
    (error: unknown) => String(error),
  );
  // The call back has begun, and takes three seconds.
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect((await remove(agent.nodeId)).status).toBe(200);
  expect(await reported).toContain(`node '${agent.nodeId}' was removed while it reported`);
  expect(await nodes()).toEqual([]);
  await joinCluster(cluster, { nodeId: agent.nodeId, joinToken: await newJoinToken(cluster) });
});

test("a node that has joined and never reported gives its name free too", async () => {
  const { config } = await joinCluster(cluster);
  const { nodeId } = config;
  expect((await remove(nodeId)).status).toBe(200);
  expect((await remove(nodeId)).status).toBe(404);
  await joinCluster(cluster, { nodeId, joinToken: await newJoinToken(cluster) });
});

test("a node with something on it stays, and the refusal counts it; forced, all of it is lost with an event each", async () => {
  const agent = await startMember(cluster, await joinCluster(cluster), { heartbeatMs: 0 });
  const [running, paused] = [await create(), await create()];
  expect((await cluster.ask("POST", `/sandboxes/${running}/snapshots`, { body: {} })).status).toBe(201);
  expect((await cluster.ask("POST", `/sandboxes/${paused}/pause`)).status).toBe(204);
  const made = await cluster.ask("POST", "/volumes", { body: { name: "far" } });
  expect(made.status, made.text).toBe(201);

  const refused = await remove(agent.nodeId);
  expect(refused.status).toBe(409);
  expect(refused.text).toContain(
    `node '${agent.nodeId}' has 1 running sandbox, 1 paused sandbox, 1 snapshot, 1 volume: end or delete them first`,
  );
  expect(refused.text).toContain("?force=true");
  expect(await nodes()).toEqual([agent.nodeId]);
  expect((await cluster.ask("GET", `/sandboxes/${running}`)).status).toBe(200);

  const forced = await remove(agent.nodeId, "?force=true");
  expect([forced.status, forced.body]).toEqual([
    200,
    { sandboxes: 1, pausedSandboxes: 1, snapshots: 1, volumes: 1, templates: 0, inStore: NOTHING },
  ]);
  expect(await nodes()).toEqual([]);
  for (const id of [running, paused]) {
    const gone = await cluster.ask("GET", `/sandboxes/${id}`);
    expect([id, gone.status]).toEqual([id, 404]);
  }
  expect((await cluster.ask("GET", "/snapshots")).body).toEqual([]);
  expect((await cluster.ask("GET", "/volumes")).body).toEqual([]);
  const told = (await events()).filter(({ type }) => /killed|snapshot_deleted/.test(type));
  const ends = told.filter(({ type }) => type.endsWith("killed"));
  expect(ends.map(({ sandboxId }) => sandboxId).sort()).toEqual([running, paused].sort());
  for (const { eventData } of ends) {
    expect(eventData).toMatchObject({ reason: "node_lost", detail: "an operator removed its node" });
  }
  expect(
    told.filter(({ type }) => type.endsWith("snapshot_deleted")).map(({ eventData }) => eventData["reason"]),
  ).toEqual(["node_removed"]);
  const audit = JSON.stringify(await cluster.database.query("select * from audit_log where action = 'removeNode'"));
  expect(audit).toContain(agent.nodeId);
});

test("the refusal and the answer tell what of the node is in the blob store, because that is not lost", async () => {
  const agent = await startMember(cluster, await joinCluster(cluster), { heartbeatMs: 0 });
  const [running, paused, alone] = [await create(), await create(), await create()];
  expect((await cluster.ask("POST", `/sandboxes/${running}/snapshots`, { body: {} })).status).toBe(201);
  expect((await cluster.ask("POST", `/sandboxes/${paused}/pause`)).status).toBe(204);
  for (const [id, snapshot] of agent.snapshots) {
    const ref = `${"a".repeat(64)}.${Math.floor(Date.now() / BLOB_PERIOD_MS)}`;
    agent.snapshots.set(id, { ...snapshot, stored: { ref, bytes: 1_000 } });
  }
  expect((await cluster.ask("POST", `/sandboxes/${alone}/pause`)).status).toBe(204);
  await agent.beat();
  expect((await remove(agent.nodeId)).text).toContain(
    "has 1 running sandbox, 2 paused sandboxes (1 in the blob store), 1 snapshot (1 in the blob store): ",
  );
  const inStore = { pausedSandboxes: 1, snapshots: 1, templates: 0 };
  expect((await remove(agent.nodeId, "?force=true")).body).toMatchObject({ pausedSandboxes: 2, snapshots: 1, inStore });
  expect((await cluster.ask("GET", `/sandboxes/${paused}`)).body).toMatchObject({ state: "paused" });
  expect((await cluster.ask("GET", `/sandboxes/${alone}`)).status).toBe(404);
});

test("a drain ends with the removal of its node: a later machine of the same name is not drained", async () => {
  const agent = await startMember(cluster, await joinCluster(cluster), { heartbeatMs: 0 });
  const { nodeId } = agent;
  const drain = () => cluster.ask("GET", `/nodes/${nodeId}/drain`, admin);
  expect((await cluster.ask("POST", `/nodes/${nodeId}/drain`, { ...admin, body: {} })).status).toBe(202);
  expect((await drain()).body).toMatchObject({ state: "done" });
  expect((await remove(nodeId)).status).toBe(200);
  await startMember(cluster, await joinCluster(cluster, { nodeId, joinToken: await newJoinToken(cluster) }), {
    heartbeatMs: 0,
  });
  expect((await drain()).body).toMatchObject({ state: "stopped" });
});

test("a node of the orchestrator's machine that reports is not removed, because it would come back; a silent one is", async () => {
  const one = await startCluster({ agent: { heartbeatMs: 0 } });
  onTestFinished(() => one.stop());
  const take = () => one.ask("DELETE", "/nodes/n1", admin);
  const refused = await take();
  expect(refused.status).toBe(409);
  expect(refused.text).toContain("would register itself again: stop its agent, wait 20 s, then remove it");
  await one.restart({ nodeTimeoutMs: 10 });
  expect((await take()).status).toBe(200);
  await one.agent.beat();
  expect((await one.ask("GET", "/nodes/n1", admin)).status).toBe(200);
});

test("an unknown node is 404, and only an operator removes one", async () => {
  const agent = await startMember(cluster, await joinCluster(cluster));
  const unknown = await remove("nowhere");
  expect([unknown.status, unknown.text]).toEqual([404, expect.stringContaining("node 'nowhere' not found")]);
  expect((await cluster.ask("DELETE", `/nodes/${agent.nodeId}`)).status).toBe(401);
  expect((await remove(agent.nodeId, "?force=maybe")).status).toBe(400);
});
