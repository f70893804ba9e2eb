/** Templates on nodes that did not build them: the image, or the memory, is read from the node that did. */

import { afterEach, beforeEach, expect, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import { buildingOn, messageOf } from "../../../support/cluster/building.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";
import { able } from "../../../support/fakes/fake-machine.ts";

const TICKET = "f".repeat(64);
const REF = `${"a".repeat(64)}.1`;

let cluster: Cluster;
let home: FakeAgent;
let other: FakeAgent;
/** The images that the second node has. */
let images: Set<string>;
beforeEach(async () => {
  cluster = await startCluster({
    agents: 2,
    agent: { heartbeatMs: 0, facts: { maxSandboxes: 1, capabilities: { ...able, peers: true } } },
    config: {
      buildPollMs: 20,
      nodeLostMs: 600_000,
      nodeTimeoutMs: 600_000,
      // Tests wait for them, and a busy machine answers within them.
      placementTimeoutMs: 10_000,
      resumeTimeoutMs: 5_000,
    },
  });
  const [first, second] = cluster.agents;
  if (first === undefined || second === undefined) throw new Error("the cluster has too few nodes");
  [home, other] = [first, second];
  images = new Set();
  home.onImageOffer = () => ({ ticket: TICKET, projectId: "template", ref: REF, doneBytes: 1, totalBytes: 1 });
  other.onImageFetch = ({ image }) => {
    images.add(image);
    return { here: true, doneBytes: 1, totalBytes: 1 };
  };
  other.onStart = ({ body }, run) => {
    const { image } = body.build;
    if (image.startsWith("built:") && !images.has(image))
      throw new AppError("template_not_found", `the node does not have the image ${image}`);
    run();
  };
  await setStatus(other, "standby");
});
afterEach(() => cluster.stop());

const { built, create } = buildingOn(() => cluster);
const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };

async function setStatus({ nodeId }: FakeAgent, status: "ready" | "standby"): Promise<void> {
  const answer = await cluster.ask("POST", `/nodes/${nodeId}`, { ...admin, body: { status } });
  expect(answer.status, answer.text).toBe(204);
}

/** The second node takes what the first one has no room for. */
async function fill(template: string): Promise<void> {
  expect((await create(template)).status).toBe(201);
  expect(home.live.size).toBe(1);
  await home.beat();
  await setStatus(other, "ready");
}

test("a template starts on the node that built it, and where that is full on another one, which fetches the image once", async () => {
  const { templateID, buildID } = await built("app");
  await fill("app");
  const answer = await create("app");
  expect(answer.status, answer.text).toBe(201);
  const image = `built:${buildID}`;
  const peer = { nodeId: home.nodeId, url: home.url, ticket: TICKET };
  expect(other.imageFetches).toEqual([{ image, ref: REF, projectId: templateID, peer }]);
  expect(other.live.size).toBe(1);
  for (const executionId of other.live.keys()) other.live.delete(executionId);
  await other.beat();
});

test("an image that the other node has dropped is fetched again", async () => {
  await built("app");
  await fill("app");
  expect((await create("app")).status).toBe(201);
  images.clear();
  const id = other.starts[0]?.body.sandboxId ?? "";
  expect((await cluster.ask("DELETE", `/sandboxes/${id}`)).status).toBe(204);
  await other.beat();
  expect((await create("app")).status).toBe(201);
  expect(other.imageFetches).toHaveLength(2);
});

test("a large image is on its way when the request's time is over, and the next request goes on", async () => {
  const { templateID } = await built("app");
  await fill("app");
  const fetched = other.onImageFetch;
  other.onImageFetch = () => ({ here: false, doneBytes: 10 * 2 ** 20, totalBytes: 500 * 2 ** 20 });
  const answer = await create("app");
  expect(answer.status).toBe(503);
  expect(messageOf(answer)).toContain(
    `the image of template ${templateID} is on its way from node ${home.nodeId} to node ${other.nodeId} (10 of 500 MiB)`,
  );
  expect(other.live.size).toBe(0);
  other.onImageFetch = fetched;
  expect((await create("app")).status).toBe(201);
});

test("where no node can read the image, the answer says where it is and what helps", async () => {
  const { templateID } = await built("app");
  await fill("app");
  home.onImageOffer = () => {
    throw new AppError("not_found", "this node does not have the image");
  };
  const answer = await create("app");
  expect(answer.status).toBeGreaterThanOrEqual(500);
  expect(messageOf(answer)).toContain("this node does not have the image");
  expect(templateID).not.toBe("");
});

test("a template with memory starts on another node where its own is full, which fetches the memory", async () => {
  await built("app", { startCmd: "serve" });
  const [snapshotId = ""] = home.snapshots.keys();
  await fill("app");
  home.onOffer = () => ({ ticket: TICKET, projectId: "project", ref: REF, doneBytes: 1, totalBytes: 1 });
  other.onFetch = (wanted) => {
    const snapshot = home.snapshots.get(wanted.snapshotId);
    if (snapshot !== undefined) other.snapshots.set(wanted.snapshotId, snapshot);
    images.add(other.starts[0]?.body.build.image ?? "");
    return { here: true, doneBytes: 1, totalBytes: 1 };
  };
  other.onStart = (_start, run) => run();
  const answer = await create("app");
  expect(answer.status, answer.text).toBe(201);
  expect(other.fetches.map((each) => each.snapshotId)).toEqual([snapshotId]);
  expect(other.starts[0]?.body.origin).toEqual({ is: "snapshot", snapshotId, memory: true });
});

test("a template whose memory no other node can have waits for its own node, whose limit is the reason", async () => {
  await built("app", { startCmd: "serve" });
  await fill("app");
  const answer = await create("app");
  expect(answer.status).toBe(503);
  expect(messageOf(answer)).toContain("limit of 1 sandboxes");
  expect(other.live.size).toBe(0);
});
