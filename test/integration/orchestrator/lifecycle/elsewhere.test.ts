/** Starts from snapshots whose node is lost or draining: on another node that fetches them from the blob store. */

import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { BLOB_PERIOD_MS } from "../../../../shared/agent-api/blobs/blob-refs.ts";
import type { Sandbox } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";
import { able } from "../../../support/fakes/fake-machine.ts";

let cluster: Cluster;
beforeEach(async () => {
  cluster = await startCluster({
    agents: 3,
    agent: { heartbeatMs: 0, facts: { capabilities: { ...able, blobStore: true } } },
    config: { nodeTimeoutMs: 600_000 },
  });
});
afterEach(() => cluster.stop());

const { connect, create, post, pause, read } = sandboxesOn(() => cluster);
const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
const ref = (periodsAgo = 0) => `${"a".repeat(64)}.${Math.floor(Date.now() / BLOB_PERIOD_MS) - periodsAgo}`;

const statusOf = async ({ nodeId }: FakeAgent) =>
  ((await cluster.ask("GET", `/nodes/${nodeId}`, admin)).body as { status: string }).status;

async function setStatus({ nodeId }: FakeAgent, status: "ready" | "standby" | "draining"): Promise<void> {
  const answer = await cluster.ask("POST", `/nodes/${nodeId}`, { ...admin, body: { status } });
  expect(answer.status, answer.text).toBe(204);
}

const drain = (agent: FakeAgent) => setStatus(agent, "draining");

/** From now on only the other nodes report. Resolves when this one counts as lost. */
async function lose(home: FakeAgent): Promise<void> {
  await cluster.restart({ nodeTimeoutMs: 8_000 });
  const others = cluster.agents.filter((each) => each !== home);
  const beating = setInterval(() => {
    for (const agent of others) agent.beat().catch(() => undefined);
  }, 300);
  onTestFinished(() => clearInterval(beating));
  await expect.poll(() => statusOf(home), { timeout: 60_000 }).toBe("unhealthy");
}

/** The node of the only snapshot, and the other nodes. */
function nodes(): { home: FakeAgent; others: FakeAgent[]; snapshotId: string } {
  const home = cluster.agents.find(({ snapshots }) => snapshots.size > 0);
  const [snapshotId] = home?.snapshots.keys() ?? [];
  if (home === undefined || snapshotId === undefined) throw new Error("no node has a snapshot");
  return { home, others: cluster.agents.filter((each) => each !== home), snapshotId };
}

/** Reports that the node's snapshot is in the blob store. */
async function upload(agent: FakeAgent, own = ref()) {
  for (const [id, snapshot] of agent.snapshots)
    agent.snapshots.set(id, { ...snapshot, stored: { ref: own, bytes: 1_000 } });
  return agent.beat();
}

async function paused(): Promise<Sandbox> {
  const sandbox = await create();
  expect((await pause(sandbox.sandboxID)).status).toBe(204);
  return sandbox;
}

/** Lets a node have the snapshot as soon as it is asked to fetch it. */
function fetchesAtOnce(agent: FakeAgent, { snapshots }: FakeAgent): void {
  agent.onFetch = ({ snapshotId }) => {
    const snapshot = snapshots.get(snapshotId);
    if (snapshot !== undefined) agent.snapshots.set(snapshotId, snapshot);
    return { here: true, doneBytes: 0, totalBytes: 0 };
  };
}

describe("a paused sandbox in the blob store", () => {
  test("of a lost node resumes with its memory on another node, which fetches it first", async () => {
    const { sandboxID } = await paused();
    const { home, others, snapshotId } = nodes();
    const own = ref();
    await upload(home, own);
    for (const agent of others) fetchesAtOnce(agent, home);
    await lose(home);
    // On a busy machine the limit of silence may pass between a report of another node and the request.
    await expect.poll(async () => (await connect(sandboxID)).status).toBe(201);
    const other = others.find(({ live }) => live.size === 1);
    const projectId = home.starts[0]?.body.projectId;
    expect(other?.fetches).toEqual([{ snapshotId, ref: own, projectId, memory: true }]);
    expect(other?.starts[0]?.body.origin).toEqual({ is: "paused", snapshotId, memory: true });
    expect((await read(sandboxID)).state).toBe("running");
    // When its former node is back, nothing names its copy any more.
    expect((await home.beat()).stop).toEqual([]);
  });

  test("of a draining node resumes on another node, and its next pause is there", async () => {
    const { sandboxID } = await paused();
    const { home, others, snapshotId } = nodes();
    await upload(home);
    for (const agent of others) fetchesAtOnce(agent, home);
    await drain(home);
    expect((await connect(sandboxID)).status).toBe(201);
    expect(home.starts).toHaveLength(1);
    const other = others.find(({ live }) => live.size === 1);
    expect((await pause(sandboxID)).status).toBe(204);
    expect([...(other?.snapshots.keys() ?? [])]).not.toEqual([snapshotId]);
    expect(other?.snapshots.size).toBeGreaterThan(0);
  });

  test("goes to a third node where the second one does not fit", async () => {
    const { sandboxID } = await paused();
    const { home, others } = nodes();
    await upload(home);
    const refused: string[] = [];
    for (const agent of others) {
      agent.onFetch = ({ snapshotId }) => {
        if (refused.length === 0) {
          refused.push(agent.nodeId);
          throw new AppError("snapshot_incompatible", "this machine's processor lacks avx512f");
        }
        fetchesAtOnce(agent, home);
        return agent.onFetch({ snapshotId, ref: "", projectId: "", memory: true });
      };
    }
    await drain(home);
    expect((await connect(sandboxID)).status).toBe(201);
    expect(refused).toHaveLength(1);
    expect(others.filter(({ live }) => live.size === 1)).toHaveLength(1);
  });

  test("of a node that came back as an empty machine resumes there, after the node has fetched it", async () => {
    const { sandboxID } = await paused();
    const { home, snapshotId } = nodes();
    const own = ref();
    await upload(home, own);
    const [snapshot] = home.snapshots.values();
    home.snapshots.clear();
    home.onFetch = () => {
      if (snapshot !== undefined) home.snapshots.set(snapshotId, snapshot);
      return { here: true, doneBytes: 0, totalBytes: 0 };
    };
    const answer = await connect(sandboxID);
    expect(answer.status, answer.text).toBe(201);
    expect(home.fetches).toMatchObject([{ snapshotId, ref: own, memory: true }]);
    expect(home.live.size).toBe(1);
    expect((await read(sandboxID)).state).toBe("running");
  });

  test("that fits no other node stays paused, and the answer says what differs", async () => {
    const { sandboxID } = await paused();
    const { home, others } = nodes();
    await upload(home);
    for (const agent of others)
      agent.onFetch = () => {
        throw new AppError("snapshot_incompatible", "this machine's processor lacks avx512f");
      };
    await lose(home);
    const answer = await connect(sandboxID);
    expect(answer.body).toMatchObject({
      error_code: "snapshot_incompatible",
      message: expect.stringContaining("lacks avx512f") as string,
    });
    expect((await read(sandboxID)).state).toBe("paused");
    expect(others.map(({ fetches }) => fetches.length)).toEqual([1, 1]);
  });

  test("that fits no other node resumes on its own one while that drains", async () => {
    const { sandboxID } = await paused();
    const { home, others } = nodes();
    await upload(home);
    for (const agent of others)
      agent.onFetch = () => {
        throw new AppError("snapshot_incompatible", "this machine's processor lacks avx512f");
      };
    await drain(home);
    expect((await connect(sandboxID)).status).toBe(201);
    expect([home.live.size, ...others.map(({ live }) => live.size)]).toEqual([1, 0, 0]);
  });

  test("that is large is on its way when the request's time is over, and the next request goes on with the same node", async () => {
    await cluster.restart({ resumeTimeoutMs: 1_000 });
    for (const agent of cluster.agents) await agent.beat();
    const { sandboxID } = await paused();
    const { home, others } = nodes();
    await upload(home);
    for (const agent of others)
      agent.onFetch = () => ({ here: false, doneBytes: 10 * 2 ** 20, totalBytes: 500 * 2 ** 20 });
    await drain(home);
    const answer = await connect(sandboxID);
    expect(answer.body).toMatchObject({
      code: 503,
      message: expect.stringContaining("(10 of 500 MiB): ask again in some seconds") as string,
    });
    expect((await read(sandboxID)).state).toBe("paused");
    for (const agent of others) fetchesAtOnce(agent, home);
    // Until the node answers within the short limit.
    await expect.poll(async () => (await connect(sandboxID)).status).toBe(201);
    const asked = others.filter(({ fetches }) => fetches.length > 0);
    expect(asked).toHaveLength(1);
    expect(asked[0]?.live.size).toBe(1);
  });
});

test("what is in the blob store outlives the removal of its node, and what is not ends with it", async () => {
  const [home, ...others] = cluster.agents;
  if (home === undefined) throw new Error("the cluster has no node");
  for (const agent of others) await setStatus(agent, "standby");
  const [kept, lost] = [await create(), await create()];
  expect((await post(kept.sandboxID, "snapshots", { name: "kept" })).status).toBe(201);
  expect((await pause(kept.sandboxID)).status).toBe(204);
  await upload(home);
  expect((await pause(lost.sandboxID)).status).toBe(204);
  for (const agent of others) {
    await setStatus(agent, "ready");
    fetchesAtOnce(agent, home);
  }
  await lose(home);
  expect((await cluster.ask("DELETE", `/nodes/${home.nodeId}?force=true`, admin)).status).toBe(200);
  expect((await connect(kept.sandboxID)).status).toBe(201);
  await create({ templateID: "kept" });
  expect((await connect(lost.sandboxID)).status).toBe(404);
  expect(home.starts).toHaveLength(2);
});

describe("a paused sandbox that is on its node only", () => {
  test("resumes there while the node drains", async () => {
    const { sandboxID } = await paused();
    const { home } = nodes();
    await drain(home);
    expect((await connect(sandboxID)).status).toBe(201);
    expect(home.live.size).toBe(1);
  });

  test("is refused while the node is lost, with where it is and what that means", async () => {
    const { sandboxID } = await paused();
    const { home, others } = nodes();
    await lose(home);
    const answer = await connect(sandboxID);
    expect(answer.body).toMatchObject({ code: 503, error_code: "no_compatible_node" });
    expect(answer.text).toContain(`node ${home.nodeId}, which holds the sandbox's snapshot, is not answering`);
    expect(answer.text).toContain("the snapshot is on that node only, because it is not in a blob store");
    expect(answer.text).toContain("its memory and disk are lost with it");
    expect(others.map(({ fetches }) => fetches)).toEqual([[], []]);
  });
});

test("a sandbox starts from a named snapshot of a draining node on another one, which fetches it once", async () => {
  const { sandboxID } = await create();
  expect((await post(sandboxID, "snapshots", { name: "kept" })).status).toBe(201);
  const { home, others, snapshotId } = nodes();
  await upload(home);
  for (const agent of others) fetchesAtOnce(agent, home);
  await drain(home);
  await create({ templateID: "kept" });
  await create({ templateID: "kept" });
  const asked = others.filter(({ fetches }) => fetches.length > 0);
  expect(asked).toHaveLength(1);
  expect(asked[0]?.starts.map(({ body }) => body.origin)).toEqual(
    Array.from({ length: 2 }, () => ({ is: "snapshot", snapshotId, memory: true })),
  );
  expect(home.starts).toHaveLength(1);
});

test("where the node that has fetched a named snapshot is full, another one fetches it too", async () => {
  await cluster.stop();
  cluster = await startCluster({
    agents: 3,
    agent: { heartbeatMs: 0, facts: { maxSandboxes: 1, capabilities: { ...able, blobStore: true } } },
    config: { nodeTimeoutMs: 600_000 },
  });
  const { sandboxID } = await create();
  expect((await post(sandboxID, "snapshots", { name: "kept" })).status).toBe(201);
  const { home, others } = nodes();
  await upload(home);
  for (const agent of others) fetchesAtOnce(agent, home);
  await drain(home);
  await create({ templateID: "kept" });
  for (const agent of others) await agent.beat();
  await create({ templateID: "kept" });
  expect(others.map(({ live }) => live.size)).toEqual([1, 1]);
});

test("a node whose upload was reported too late uploads it again", async () => {
  await paused();
  const { home, snapshotId } = nodes();
  expect((await upload(home, ref(9))).uploadAgain).toEqual([snapshotId]);
  expect((await upload(home)).uploadAgain).toBeUndefined();
});
