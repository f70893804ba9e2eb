/** Drains through the API: what runs and what is paused goes to other nodes, which read it from the first. */

import { afterEach, beforeEach, expect, test } from "vitest";
import type { Drain } from "../../../../shared/api/nodes/drains.ts";
import type { Sandbox } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";
import { able } from "../../../support/fakes/fake-machine.ts";
import { gateway } from "../../../support/runner/promises.ts";

const SOON = { timeout: 30_000 };
const TICKET = "f".repeat(64);
const REF = `${"a".repeat(64)}.1`;

let cluster: Cluster;
let home: FakeAgent;
let other: FakeAgent;
beforeEach(async () => {
  cluster = await startCluster({
    agents: 2,
    agent: { heartbeatMs: 0, facts: { capabilities: { ...able, peers: true } } },
    config: { nodeTimeoutMs: 600_000, resumeTimeoutMs: 1_000, patienceMs: 400 },
  });
  const [first, second] = cluster.agents;
  if (first === undefined || second === undefined) throw new Error("the cluster has too few nodes");
  [home, other] = [first, second];
  await setStatus(other, "standby");
  home.onOffer = () => ({ ticket: TICKET, projectId: "project", ref: REF, doneBytes: 1, totalBytes: 1 });
  other.onFetch = ({ snapshotId }) => {
    const snapshot = home.snapshots.get(snapshotId);
    if (snapshot !== undefined) other.snapshots.set(snapshotId, snapshot);
    return { here: true, doneBytes: 1, totalBytes: 1 };
  };
});
afterEach(() => cluster.stop());

const { create, pause, read, connect, eventsOf, routed } = sandboxesOn(() => cluster);
const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };

async function setStatus({ nodeId }: FakeAgent, status: "ready" | "standby" | "draining"): Promise<void> {
  const answer = await cluster.ask("POST", `/nodes/${nodeId}`, { ...admin, body: { status } });
  expect(answer.status, answer.text).toBe(204);
}

/** A sandbox on the first node. The other one takes sandboxes from then on. */
async function onHome(body = {}): Promise<Sandbox> {
  const sandbox = await create({ timeout: 600, ...body });
  await setStatus(other, "ready");
  return sandbox;
}

async function drain(body: object = {}): Promise<Drain> {
  const answer = await cluster.ask("POST", `/nodes/${home.nodeId}/drain`, { ...admin, body });
  expect(answer.status, answer.text).toBe(202);
  return answer.body as Drain;
}
const progress = async () => (await cluster.ask("GET", `/nodes/${home.nodeId}/drain`, admin)).body as Drain;
const of = async ({ sandboxID }: Pick<Sandbox, "sandboxID">) =>
  (await progress()).sandboxes.find((each) => each.sandboxID === sandboxID);

test("a running sandbox goes on on another node, which reads its memory and disk from the first, and does not lose time by the stall", async () => {
  const sandbox = await onHome();
  const before = await read(sandbox.sandboxID);
  expect(await drain()).toMatchObject({ nodeID: home.nodeId, deadlineAt: null, running: "move", atOnce: 2 });
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "moved", was: "running", toNodeID: other.nodeId });
  expect((await of(sandbox))?.stallMs).toBeGreaterThanOrEqual(0);
  expect((await progress()).state).toBe("done");
  expect([home.live.size, other.live.size]).toEqual([0, 1]);
  expect(other.fetches[0]).toEqual({
    snapshotId: expect.any(String) as string,
    ref: REF,
    projectId: "project",
    memory: true,
    peer: { nodeId: home.nodeId, url: home.url, ticket: TICKET },
  });
  const after = await read(sandbox.sandboxID);
  expect(after.state).toBe("running");
  const later = Date.parse(after.endAt) - Date.parse(before.endAt);
  expect(later).toBeGreaterThanOrEqual(0);
  // Its start, and what is missing to a whole second.
  expect(later).toBeLessThanOrEqual(((await of(sandbox))?.stallMs ?? 0) + 1_000);
  expect((await eventsOf(sandbox.sandboxID)).slice(-2)).toEqual(["paused", "resumed"]);
});

test("requests for a sandbox on its way wait for it, although it does not resume by traffic", async () => {
  const sandbox = await onHome();
  const fetching = gateway();
  const fetch = other.onFetch;
  other.onFetch = async (request) => {
    await fetching.promise;
    return fetch(request);
  };
  await drain();
  await expect.poll(() => other.fetches.length, SOON).toBe(1);
  const answer = routed(sandbox.sandboxID);
  fetching.resolve();
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "moved" });
  expect(await answer).not.toContain("is paused");
  expect(await answer).not.toContain("not found");
});

test("a sandbox that does not start at once on the other node is moved only when it runs there, and requests wait until then", async () => {
  const sandbox = await onHome();
  const starting = gateway();
  const failures = { left: 2 };
  other.onStart = async (_start, run) => {
    if (failures.left-- > 0) throw new AppError("snapshot_failed", "the restore did not end within its limit");
    await starting.promise;
    run();
  };
  await drain();
  await expect.poll(() => failures.left, SOON).toBeLessThan(0);
  expect((await of(sandbox))?.state).toBe("moving");
  const answer = routed(sandbox.sandboxID);
  starting.resolve();
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "moved", toNodeID: other.nodeId });
  expect((await read(sandbox.sandboxID)).state).toBe("running");
  expect(await answer).not.toContain("not found");
  expect((await of(sandbox))?.stallMs).toEqual(expect.any(Number));
});

test("a sandbox whose node has ended its offer, because the files had changed, is offered once more and moves at once", async () => {
  const sandbox = await onHome();
  const anew = "1".repeat(64);
  const offers = { count: 0 };
  home.onOffer = () => {
    const ticket = offers.count++ === 0 ? TICKET : anew;
    return { ticket, projectId: "project", ref: REF, doneBytes: 1, totalBytes: 1 };
  };
  const fetch = other.onFetch;
  other.onFetch = (request) => {
    if (request.peer?.ticket === TICKET)
      throw new AppError("unavailable", "its disk has changed since it was described");
    return fetch(request);
  };
  await drain();
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "moved", toNodeID: other.nodeId });
  expect(other.fetches.slice(0, 2).map(({ peer }) => peer?.ticket)).toEqual([TICKET, anew]);
});

test("a paused sandbox goes to another node as it is, and the first one deletes its copy", async () => {
  const sandbox = await onHome();
  expect((await pause(sandbox.sandboxID)).status).toBe(204);
  const [snapshotId] = home.snapshots.keys();
  await drain();
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "moved", was: "paused", toNodeID: other.nodeId });
  expect((await read(sandbox.sandboxID)).state).toBe("paused");
  await expect.poll(() => home.removed, SOON).toEqual([snapshotId]);
  expect((await connect(sandbox.sandboxID)).status).toBe(201);
  expect(other.live.size).toBe(1);
});

test("what no other node can take runs on where it is, without a pause, and the progress says why", async () => {
  const sandbox = await create();
  await drain();
  await expect
    .poll(() => of(sandbox), SOON)
    .toMatchObject({
      state: "stays",
      stallMs: null,
      reason: expect.stringContaining("no other node can take it") as string,
    });
  expect(home.live.size).toBe(1);
  expect((await progress()).state).toBe("draining");
  expect(await eventsOf(sandbox.sandboxID)).toEqual(["created"]);
});

test("a sandbox whose memory fits no other node runs again on its own, after one stall", async () => {
  const sandbox = await onHome();
  other.onFetch = () => {
    throw new AppError("snapshot_incompatible", "this machine's processor lacks avx512f");
  };
  await drain();
  await expect
    .poll(() => of(sandbox), SOON)
    .toMatchObject({
      state: "stays",
      reason: expect.stringContaining("lacks avx512f") as string,
      stallMs: expect.any(Number) as number,
    });
  expect((await read(sandbox.sandboxID)).state).toBe("running");
  expect([home.live.size, other.live.size]).toEqual([1, 0]);
});

test("sandboxes that may finish run until the deadline, which ends them where the operator said so", async () => {
  const sandbox = await onHome();
  await drain({ running: "finish" });
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "waiting", reason: "it runs until its end" });
  // Asked again, the drain under way changes.
  const again = await drain({ running: "finish", deadlineSeconds: 1, atDeadline: "kill" });
  expect(again.begunAt).toBe((await progress()).begunAt);
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "killed" });
  expect((await progress()).state).toBe("done");
  expect((await eventsOf(sandbox.sandboxID)).at(-1)).toBe("killed");
  const wrong = await cluster.ask("POST", `/nodes/${home.nodeId}/drain`, { ...admin, body: { atDeadline: "kill" } });
  expect(wrong.status).toBe(400);
});

test("a drain goes on after the orchestrator has ended between the pause and the start", async () => {
  const sandbox = await onHome();
  other.onFetch = () => ({ here: false, doneBytes: 1, totalBytes: 2 });
  await drain();
  await expect.poll(() => other.fetches.length, SOON).toBeGreaterThan(0);
  expect((await of(sandbox))?.state).toBe("moving");
  const stoodAt = Date.now();
  const fetched: FakeAgent["onFetch"] = ({ snapshotId }) => {
    const snapshot = home.snapshots.get(snapshotId);
    if (snapshot !== undefined) other.snapshots.set(snapshotId, snapshot);
    return { here: true, doneBytes: 2, totalBytes: 2 };
  };
  await cluster.restart({}, () => {
    other.onFetch = fetched;
  });
  const away = Date.now() - stoodAt;
  for (const agent of [home, other]) await agent.beat();
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "moved", toNodeID: other.nodeId });
  // The stall is one, also of a sandbox that two orchestrators have moved.
  expect((await of(sandbox))?.stallMs).toBeGreaterThanOrEqual(away);
  expect((await read(sandbox.sandboxID)).state).toBe("running");
});

test("a drain whose pause got no answer waits for its end, and moves the sandbox", async () => {
  const sandbox = await onHome();
  const late = gateway();
  const asked = { silentUntil: 0, late: 0 };
  home.onPause = async ({ snapshotId }, take) => {
    if (asked.silentUntil === 0) asked.silentUntil = Date.now() + 1_500;
    // Longer than the orchestrator asks again.
    if (Date.now() < asked.silentUntil) throw new AppError("node_unreachable", "no answer");
    asked.late++;
    await late.promise;
    if (!home.snapshots.has(snapshotId)) take();
  };
  await drain();
  await expect.poll(() => asked.late, SOON).toBeGreaterThan(0);
  expect((await of(sandbox))?.state).toBe("moving");
  const answer = routed(sandbox.sandboxID);
  late.resolve();
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "moved", toNodeID: other.nodeId });
  expect((await read(sandbox.sandboxID)).state).toBe("running");
  expect(await answer).not.toMatch(/not found|is paused|transitioning/);
});

test("a sandbox that its owner pauses while a drain has it arrives paused, at whichever moment of the move", async () => {
  const [first, second] = [await create({ timeout: 600 }), await onHome()];
  const pausing = gateway();
  home.onPause = async ({ executionId }, take) => {
    if (home.live.get(executionId)?.body.sandboxId === first.sandboxID) await pausing.promise;
    take();
  };
  const fetching = gateway();
  const fetch = other.onFetch;
  other.onFetch = async (request) => {
    await fetching.promise;
    return fetch(request);
  };
  await drain();
  await expect.poll(() => other.fetches.length, SOON).toBe(1);
  const joined = pause(first.sandboxID);
  expect((await pause(second.sandboxID)).status).toBe(204);
  // Until the other request has come to the pause of the drain.
  await new Promise((resolve) => setTimeout(resolve, 300));
  pausing.resolve();
  expect((await joined).status).toBe(204);
  fetching.resolve();
  for (const sandbox of [first, second]) {
    await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "moved", was: "paused", toNodeID: other.nodeId });
    expect((await read(sandbox.sandboxID)).state).toBe("paused");
    expect((await connect(sandbox.sandboxID)).status).toBe(201);
  }
  expect([home.live.size, other.live.size]).toEqual([0, 2]);
});

test("a node that is ready again keeps what it has, and its drain is over", async () => {
  const sandbox = await create();
  await drain();
  await expect.poll(() => of(sandbox), SOON).toMatchObject({ state: "stays" });
  await setStatus(home, "ready");
  expect(await progress()).toMatchObject({ state: "stopped", endedAt: expect.any(String) as string });
  await setStatus(other, "ready");
  expect(home.live.size).toBe(1);
});

test("a node that was never drained has no drain, and an unknown one none to begin", async () => {
  expect((await cluster.ask("GET", `/nodes/${home.nodeId}/drain`, admin)).status).toBe(404);
  expect((await cluster.ask("POST", "/nodes/nobody/drain", { ...admin, body: {} })).status).toBe(404);
  // A cordon moves nothing.
  const sandbox = await onHome();
  await setStatus(home, "draining");
  expect((await read(sandbox.sandboxID)).state).toBe("running");
  expect((await cluster.ask("GET", `/nodes/${home.nodeId}/drain`, admin)).status).toBe(404);
  expect(home.live.size).toBe(1);
});
