/** Templates whose node is gone: other nodes get the image, or the memory, from the blob store, or from another node that has it. */

import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { BLOB_PERIOD_MS } from "../../../../shared/agent-api/blobs/blob-refs.ts";
import type { HeldImage } from "../../../../shared/agent-api/routes.ts";
import type { StorageReport } from "../../../../shared/api/storage.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { buildingOn, messageOf } from "../../../support/cluster/building.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";
import { able } from "../../../support/fakes/fake-machine.ts";

const TICKET = "f".repeat(64);
const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
const ref = (digit = "a", periodsAgo = 0) =>
  `${digit.repeat(64)}.${Math.floor(Date.now() / BLOB_PERIOD_MS) - periodsAgo}`;

let cluster: Cluster;
let home: FakeAgent;
let others: FakeAgent[];
/** The images that the other nodes have, by node. */
let images: Map<FakeAgent, Set<string>>;

async function begin(capabilities: object): Promise<void> {
  cluster = await startCluster({
    agents: 3,
    agent: { heartbeatMs: 0, facts: { capabilities: { ...able, ...capabilities } } },
    config: {
      buildPollMs: 20,
      nodeLostMs: 600_000,
      nodeTimeoutMs: 600_000,
      // Tests wait for them, and a busy machine answers within them.
      placementTimeoutMs: 10_000,
      resumeTimeoutMs: 5_000,
    },
  });
  const [first, ...rest] = cluster.agents;
  if (first === undefined) throw new Error("the cluster has no node");
  [home, others] = [first, rest];
  images = new Map(others.map((agent) => [agent, new Set<string>()]));
  for (const agent of others) {
    await setStatus(agent, "standby");
    agent.onImageFetch = ({ image }) => {
      images.get(agent)?.add(image);
      return { here: true, doneBytes: 1, totalBytes: 1 };
    };
    agent.onStart = ({ body: { build } }, run) => {
      if (build.image.startsWith("built:") && images.get(agent)?.has(build.image) !== true)
        throw new AppError("template_not_found", `the node does not have the image ${build.image}`);
      run();
    };
  }
}
beforeEach(() => begin({ blobStore: true, peers: true }));
afterEach(() => cluster.stop());

const { built, create } = buildingOn(() => cluster);

async function setStatus({ nodeId }: FakeAgent, status: "ready" | "standby"): Promise<void> {
  const answer = await cluster.ask("POST", `/nodes/${nodeId}`, { ...admin, body: { status } });
  expect(answer.status, answer.text).toBe(204);
}

/** Reports which images the node has, beside what it reports otherwise. */
function report(agent: FakeAgent, held: readonly HeldImage[]) {
  agent.load = { ...agent.load, images: [...held] };
  return agent.beat();
}

/** From now on only the other nodes report, and take sandboxes. Resolves when this one counts as lost. */
async function lose(): Promise<void> {
  for (const agent of others) await setStatus(agent, "ready");
  await cluster.restart({ nodeTimeoutMs: 8_000 });
  const beating = setInterval(() => {
    for (const agent of others) agent.beat().catch(() => undefined);
  }, 300);
  onTestFinished(() => clearInterval(beating));
  const statusOf = async () =>
    ((await cluster.ask("GET", `/nodes/${home.nodeId}`, admin)).body as { status: string }).status;
  await expect.poll(statusOf, { timeout: 60_000 }).toBe("unhealthy");
}

const fetches = () => others.flatMap(({ imageFetches }) => imageFetches);
const running = () => others.reduce((sum, { live }) => sum + live.size, 0);

test("a template whose only node is gone starts from the store on another node, also when the node was removed", async () => {
  const { buildID } = await built("app");
  const own = ref();
  await report(home, [{ buildId: buildID, stored: { ref: own, bytes: 1_000 } }]);
  await lose();
  const answer = await create("app");
  expect(answer.status, answer.text).toBe(201);
  expect(fetches()).toEqual([{ image: `built:${buildID}`, ref: own, projectId: expect.any(String) as string }]);
  expect((await cluster.ask("DELETE", `/nodes/${home.nodeId}?force=true`, admin)).status).toBe(200);
  for (const held of images.values()) held.clear();
  expect((await create("app")).status).toBe(201);
  expect(running()).toBe(2);
  expect(fetches()).toHaveLength(2);
});

test("a template with memory starts from the store with its memory", async () => {
  const { buildID } = await built("app", { startCmd: "serve" });
  const [snapshotId = ""] = home.snapshots.keys();
  const memory = { snapshotId, stored: { ref: ref("b"), bytes: 1_000 } };
  await report(home, [{ buildId: buildID, stored: { ref: ref("a"), bytes: 1_000 }, memory }]);
  const snapshot = home.snapshots.get(snapshotId);
  for (const agent of others) {
    agent.onFetch = () => {
      if (snapshot !== undefined) agent.snapshots.set(snapshotId, snapshot);
      return { here: true, doneBytes: 0, totalBytes: 0 };
    };
    agent.onStart = (_start, run) => run();
  }
  await lose();
  const answer = await create("app");
  expect(answer.status, answer.text).toBe(201);
  const asked = others.flatMap((agent) => agent.fetches);
  expect(asked).toMatchObject([{ snapshotId, ref: memory.stored.ref, memory: true }]);
  expect(others.flatMap(({ starts }) => starts)[0]?.body.origin).toEqual({ is: "snapshot", snapshotId, memory: true });
});

test.each([
  { named: "image", body: {}, says: (id: string) => `the image of template ${id} is on node` },
  { named: "memory", body: { startCmd: "serve" }, says: (id: string) => `which holds the memory of template ${id}` },
])(
  "without the store the answer says where the $named of a template is, and what its loss means",
  async ({ body, says }) => {
    const { templateID, buildID } = await built("app", body);
    await report(home, [{ buildId: buildID }]);
    await lose();
    const answer = await create("app");
    expect(answer.body).toMatchObject({ code: 503, error_code: "no_compatible_node" });
    expect(messageOf(answer)).toContain(says(templateID));
    expect(messageOf(answer)).toContain(home.nodeId);
    expect(messageOf(answer)).toContain("not in a blob store (SVC_BLOB_STORE)");
    expect(messageOf(answer)).toContain("if the node is lost, the template has to be built again");
    expect(fetches()).toEqual([]);
    expect(running()).toBe(0);
  },
);

test("a node that has a copy starts the template while the one that built it is gone, and gives it to a third", async () => {
  const { buildID } = await built("app");
  const [second, third] = others;
  if (second === undefined || third === undefined) throw new Error("the cluster has too few nodes");
  images.get(second)?.add(`built:${buildID}`);
  await report(second, [{ buildId: buildID }]);
  await lose();
  expect((await create("app")).status).toBe(201);
  expect(second.live.size).toBe(1);
  second.onImageOffer = () => ({ ticket: TICKET, projectId: "x", ref: ref("c"), doneBytes: 1, totalBytes: 1 });
  await setStatus(second, "standby");
  expect((await create("app")).status).toBe(201);
  expect(third.imageFetches).toMatchObject([{ ref: ref("c"), peer: { nodeId: second.nodeId, ticket: TICKET } }]);
});

test("what the store has damaged comes from the node that lives, and where that cannot give it the answer names both", async () => {
  const { buildID } = await built("app");
  await report(home, [{ buildId: buildID, stored: { ref: ref(), bytes: 1_000 } }]);
  const damaged = "image x could not be fetched: the store: blob 77 is damaged";
  for (const agent of others) {
    await setStatus(agent, "ready");
    const usual = agent.onImageFetch;
    agent.onImageFetch = (wanted) => {
      if (wanted.peer === undefined) throw new AppError("snapshot_corrupt", damaged);
      return usual(wanted);
    };
  }
  await setStatus(home, "standby");
  home.onImageOffer = () => {
    throw new AppError("not_found", "this node does not have the image");
  };
  const refused = await create("app");
  expect(messageOf(refused)).toContain(damaged);
  expect(messageOf(refused)).toContain("this node does not have the image");
  home.onImageOffer = () => ({ ticket: TICKET, projectId: "x", ref: ref("c"), doneBytes: 1, totalBytes: 1 });
  expect((await create("app")).status).toBe(201);
  expect(fetches().map(({ peer }) => peer?.nodeId)).toContain(home.nodeId);
});

test("a node whose disk is full leaves the start to another one", async () => {
  const { buildID } = await built("app");
  await report(home, [{ buildId: buildID, stored: { ref: ref(), bytes: 1_000 } }]);
  const full: string[] = [];
  for (const agent of others) {
    const usual = agent.onImageFetch;
    agent.onImageFetch = (wanted) => {
      if (full.length > 0) return usual(wanted);
      full.push(agent.nodeId);
      throw new AppError("no_space", "the disk of this node is full");
    };
  }
  await lose();
  expect((await create("app")).status).toBe(201);
  expect(others.find(({ live }) => live.size === 1)?.nodeId).not.toBe(full[0]);
});

test("a node whose upload came too late uploads it again, and learns whose an older build is", async () => {
  const { buildID } = await built("app");
  const reply = await report(home, [{ buildId: buildID, ownerless: true, stored: { ref: ref("a", 9), bytes: 1 } }]);
  expect(reply.uploadAgain).toEqual([buildID]);
  expect(reply.owners).toEqual({ [buildID]: expect.any(String) as string });
  expect(await report(home, [{ buildId: buildID, stored: { ref: ref(), bytes: 1 } }])).not.toHaveProperty("owners");
});

test("operators see which nodes have the image of a template, and whether it outlives them", async () => {
  const { templateID, buildID } = await built("app");
  await report(home, [{ buildId: buildID, stored: { doneBytes: 10, totalBytes: 40 } }]);
  const shown = async () => {
    const { templates } = (await cluster.ask("GET", "/admin/storage", admin)).body as StorageReport;
    return templates.find((each) => each.buildID === buildID);
  };
  const common = { templateID, buildID, nodeID: home.nodeId, hasMemory: false, memoryInStore: false };
  expect(await shown()).toMatchObject({
    ...common,
    heldBy: [home.nodeId],
    inStore: false,
    upload: { doneBytes: 10, totalBytes: 40, failure: null },
  });
  await report(home, [{ buildId: buildID, stored: { failure: "the store is away" } }]);
  expect(await shown()).toMatchObject({ inStore: false, upload: { failure: "the store is away" } });
  await report(home, [{ buildId: buildID, stored: { ref: ref(), bytes: 40 } }]);
  await report(others[0] ?? home, [{ buildId: buildID }]);
  expect(await shown()).toMatchObject({
    heldBy: expect.arrayContaining([home.nodeId, others[0]?.nodeId]) as string[],
    inStore: true,
    upload: null,
  });
});

test("nodes hear that each of them reads blobs packed by zstd, and no more of it once one that does not has reported", async () => {
  await cluster.stop();
  await begin({ blobStore: true, peers: true, detail: { blobEncodings: "deflate, zstd" } });
  expect((await home.beat()).zstdBlobs).toBe(true);
  const [older] = others;
  if (older === undefined) throw new Error("the cluster has no other node");
  older.facts = { capabilities: { ...able, blobStore: true, detail: {} } };
  // The orchestrator looks once in five seconds, and at its start.
  await cluster.restart();
  await older.beat();
  expect(await home.beat()).not.toHaveProperty("zstdBlobs");
});
