/** A node is lost or removed in the middle of a change of its sandboxes: what was only there ends, and the rest goes on elsewhere. */

import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { BLOB_PERIOD_MS } from "../../../../shared/agent-api/blobs/blob-refs.ts";
import type { Sandbox } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import type { FakeAgent, Started } from "../../../support/fakes/fake-agent-shapes.ts";
import { able } from "../../../support/fakes/fake-machine.ts";

const SOON = { timeout: 30_000 };
const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
const ref = () => `${"a".repeat(64)}.${Math.floor(Date.now() / BLOB_PERIOD_MS)}`;

let cluster: Cluster;
let home: FakeAgent;
let other: FakeAgent;
beforeEach(async () => {
  cluster = await startCluster({
    agents: 2,
    agent: { heartbeatMs: 0, facts: { capabilities: { ...able, blobStore: true, peers: true } } },
    config: { nodeTimeoutMs: 600_000, nodeLostMs: 600_000, patienceMs: 400 },
  });
  const [first, second] = cluster.agents;
  if (first === undefined || second === undefined) throw new Error("the cluster has too few nodes");
  [home, other] = [first, second];
  await setStatus(other, "standby");
  other.onFetch = ({ snapshotId }) => {
    const snapshot = home.snapshots.get(snapshotId);
    if (snapshot !== undefined) other.snapshots.set(snapshotId, snapshot);
    return { here: true, doneBytes: 0, totalBytes: 0 };
  };
});
afterEach(() => cluster.stop());

const { connect, create, eventsOf, pause, paused, post, read } = sandboxesOn(() => cluster);

async function setStatus({ nodeId }: FakeAgent, status: "ready" | "standby" | "draining"): Promise<void> {
  const answer = await cluster.ask("POST", `/nodes/${nodeId}`, { ...admin, body: { status } });
  expect(answer.status, answer.text).toBe(204);
}

/** Of the record: the API shows a sandbox that is being resumed as paused. */
async function stateOf({ sandboxID }: Sandbox): Promise<unknown> {
  return (await cluster.database.query("select state from sandboxes where id = ?", sandboxID))[0]?.["state"];
}

const endOf = async ({ sandboxID }: Sandbox) => (await cluster.ask("GET", `/sandboxes/${sandboxID}?ended=true`)).body;

/** Records that the node's snapshots are in the blob store. */
async function upload(): Promise<void> {
  for (const [id, snapshot] of home.snapshots)
    home.snapshots.set(id, { ...snapshot, stored: { ref: ref(), bytes: 1_000 } });
  await home.beat();
}

const cut = () => {
  throw new AppError("node_unreachable", "the connection was cut");
};

/** From now on nobody reaches the node, whose reports only a test sends. */
function die(node: FakeAgent): void {
  Object.assign(node, { onStart: cut, onPause: cut, onStop: cut, onRemove: cut });
}

/** The node may have begun what it was asked for, and nobody knows. */
async function diesDuring(node: FakeAgent, request: () => Promise<{ readonly status: number }>): Promise<void> {
  die(node);
  expect((await request()).status).toBe(503);
}

/** From now on only the other node reports, and a silent one is lost after some seconds. */
async function silence(node: FakeAgent): Promise<void> {
  await cluster.restart({ nodeTimeoutMs: 3_000, nodeLostMs: 4_000 });
  const living = cluster.agents.filter((each) => each !== node);
  const beating = setInterval(() => {
    for (const agent of living) agent.beat().catch(() => undefined);
  }, 300);
  onTestFinished(() => clearInterval(beating));
  await setStatus(other, "ready");
}

/** Resolves with the executions that the node has to stop. @param begun what it runs, beside what it ran before */
async function comesBack(node: FakeAgent, begun: readonly Started[] = []): Promise<readonly string[]> {
  Object.assign(node, {
    onStart: (_start: Started, run: () => void) => run(),
    onStop: () => undefined,
    onRemove: () => undefined,
  });
  for (const started of begun) node.live.set(started.executionId, started);
  return (await node.beat()).stop;
}

/**
 * Resumes the sandbox on a node that reports: on a busy machine the limit of silence may pass between a report and the request.
 */
const resumesOn = (node: FakeAgent, { sandboxID }: Sandbox) =>
  expect
    .poll(async () => {
      await node.beat();
      return (await connect(sandboxID)).status;
    }, SOON)
    .toBe(201);

const idsOf = (started: readonly Started[]) => started.map(({ executionId }) => executionId);

describe("a node that is lost during a resume", () => {
  test("of a sandbox in the blob store leaves it paused: it runs on another node, and the first one ends its start when it is back", async () => {
    const sandbox = await paused();
    await upload();
    await diesDuring(home, () => connect(sandbox.sandboxID));
    expect(await stateOf(sandbox)).toBe("starting");
    await silence(home);
    await expect.poll(() => stateOf(sandbox), SOON).toBe("paused");
    await resumesOn(other, sandbox);
    expect(other.starts.at(-1)?.body.origin).toMatchObject({ is: "paused", memory: true });
    expect(await eventsOf(sandbox.sandboxID)).toEqual(["created", "paused", "resumed"]);
    const begun = home.starts.slice(-1);
    expect(await comesBack(home, begun)).toEqual(idsOf(begun));
    expect([home.live.size, other.live.size]).toEqual([0, 1]);
    expect((await read(sandbox.sandboxID)).state).toBe("running");
  });

  test("that comes back before the sandbox is resumed elsewhere ends its start too", async () => {
    const sandbox = await paused();
    await upload();
    await diesDuring(home, () => connect(sandbox.sandboxID));
    await silence(home);
    await expect.poll(() => stateOf(sandbox), SOON).toBe("paused");
    const begun = home.starts.slice(-1);
    expect(await comesBack(home, begun)).toEqual(idsOf(begun));
    expect(await stateOf(sandbox)).toBe("paused");
  });

  test("of a sandbox that is nowhere else goes on with the same execution when it is back", async () => {
    const [sandbox, witness] = [await paused(), await create()];
    const running = home.starts.slice(-1);
    await diesDuring(home, () => connect(sandbox.sandboxID));
    await silence(home);
    // What runs there is lost: the node has been given up.
    await expect.poll(() => stateOf(witness), SOON).toBe("gone");
    expect(await stateOf(sandbox)).toBe("starting");
    expect((await read(sandbox.sandboxID)).state).toBe("paused");
    const begun = home.starts.slice(-1);
    // What was given up, and not this.
    expect(await comesBack(home, begun)).toEqual(idsOf(running));
    await resumesOn(home, sandbox);
    expect([...home.live.keys()]).toEqual(idsOf(begun));
  });

  test("that has fetched the snapshot from the first node leaves the sandbox paused there, and it runs with its memory", async () => {
    const sandbox = await paused();
    home.onOffer = () => ({ ticket: "f".repeat(64), projectId: "project", ref: ref(), doneBytes: 1, totalBytes: 1 });
    await setStatus(other, "ready");
    await setStatus(home, "draining");
    await diesDuring(other, () => connect(sandbox.sandboxID));
    expect(await stateOf(sandbox)).toBe("starting");
    expect(other.starts.at(-1)?.body.origin).toMatchObject({ is: "paused", memory: true });
    await silence(other);
    await expect.poll(() => stateOf(sandbox), SOON).toBe("paused");
    await resumesOn(home, sandbox);
    expect(home.starts.at(-1)?.body.origin).toMatchObject({ is: "paused", memory: true });
    const begun = other.starts.slice(-1);
    expect(await comesBack(other, begun)).toEqual(idsOf(begun));
    expect((await read(sandbox.sandboxID)).state).toBe("running");
  });

  test("and then removed keeps what is in the blob store, and ends the rest with an event", async () => {
    const stored = await paused();
    await upload();
    const [lost, pausing] = [await paused(), await create()];
    home.onStart = cut;
    expect((await connect(lost.sandboxID)).status).toBe(503);
    expect((await connect(stored.sandboxID)).status).toBe(503);
    await diesDuring(home, () => pause(pausing.sandboxID));
    expect(await Promise.all([stored, lost, pausing].map(stateOf))).toEqual(["starting", "starting", "pausing"]);
    await cluster.restart({ nodeTimeoutMs: 3_000 });
    await setStatus(other, "ready");
    await expect
      .poll(async () => (await cluster.ask("DELETE", `/nodes/${home.nodeId}?force=true`, admin)).status, SOON)
      .toBe(200);
    expect(await Promise.all([stored, lost, pausing].map(stateOf))).toEqual(["paused", "gone", "gone"]);
    for (const sandbox of [lost, pausing])
      expect(await endOf(sandbox)).toMatchObject({
        endReason: "node_lost",
        endDetail: "an operator removed its node",
      });
    await resumesOn(other, stored);
  });
});

test("a sandbox that was being paused when its node was lost ends with it, and its event says what it was doing", async () => {
  const sandbox = await create();
  const running = home.starts.slice(-1);
  await diesDuring(home, () => pause(sandbox.sandboxID));
  expect(await stateOf(sandbox)).toBe("pausing");
  await silence(home);
  await expect.poll(() => stateOf(sandbox), SOON).toBe("gone");
  expect(await endOf(sandbox)).toMatchObject({ endReason: "node_lost", endDetail: "it was being paused" });
  expect((await eventsOf(sandbox.sandboxID)).at(-1)).toBe("killed");
  expect(await comesBack(home)).toEqual(idsOf(running));
});

test("a kill of a sandbox that was being paused when its node died ends it before the node is lost", async () => {
  const sandbox = await create();
  await diesDuring(home, () => pause(sandbox.sandboxID));
  expect((await cluster.ask("DELETE", `/sandboxes/${sandbox.sandboxID}`)).status).toBe(204);
  await silence(home);
  await expect.poll(() => stateOf(sandbox), SOON).toBe("gone");
  expect(await endOf(sandbox)).toMatchObject({ endReason: "request" });
});

test("a rewind during which its node is lost ends the running sandbox, and leaves the paused one paused", async () => {
  const [running, still] = [await create(), await create()];
  const snapshots = await Promise.all(
    [running, still].map(async ({ sandboxID }) => (await post(sandboxID, "snapshots", {})).body),
  );
  const [ofRunning, ofStill] = snapshots as { readonly snapshotID: string }[];
  expect((await pause(still.sandboxID)).status).toBe(204);
  home.onStart = cut;
  expect((await post(running.sandboxID, "rewind", ofRunning)).status).toBe(503);
  await diesDuring(home, () => post(still.sandboxID, "rewind", ofStill));
  expect(await Promise.all([running, still].map(stateOf))).toEqual(["rewinding", "rewinding"]);
  await silence(home);
  await expect.poll(() => Promise.all([running, still].map(stateOf)), SOON).toEqual(["gone", "paused"]);
  expect(await endOf(running)).toMatchObject({ endReason: "node_lost", endDetail: "it was being rewound" });
  await comesBack(home);
  await resumesOn(home, still);
});

test("a drain whose other node is lost has its sandbox paused again, to go back to its own node", async () => {
  const sandbox = await create({ timeout: 600 });
  home.onOffer = () => ({ ticket: "f".repeat(64), projectId: "project", ref: ref(), doneBytes: 1, totalBytes: 1 });
  other.onStart = cut;
  await setStatus(other, "ready");
  const drain = await cluster.ask("POST", `/nodes/${home.nodeId}/drain`, { ...admin, body: {} });
  expect(drain.status, drain.text).toBe(202);
  await expect.poll(() => stateOf(sandbox), SOON).toBe("starting");
  die(other);
  await cluster.restart({ nodeTimeoutMs: 3_000, nodeLostMs: 4_000 });
  const beating = setInterval(() => void home.beat().catch(() => undefined), 300);
  onTestFinished(() => clearInterval(beating));
  await expect.poll(() => stateOf(sandbox), SOON).toBe("paused");
});

test("a change that was under way on a node which the platform does not have any more is settled", async () => {
  const [pausing, running] = [await create(), await create()];
  await cluster.restart(undefined, async () => {
    await cluster.database.query(
      "update sandboxes set state = 'pausing', node_id = 'nowhere', pending_snapshot_id = 's', pending_snapshot_memory = 1 where id = ?",
      pausing.sandboxID,
    );
  });
  await expect.poll(() => stateOf(pausing), SOON).toBe("gone");
  expect(await endOf(pausing)).toMatchObject({ endReason: "node_lost", endDetail: "an operator removed its node" });
  expect((await read(running.sandboxID)).state).toBe("running");
});
