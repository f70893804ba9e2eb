/** What operators read of nodes: where a start would go and why not elsewhere, what failed, what a loss means, and when a node was lost. */

import { afterEach, expect, onTestFinished, test } from "vitest";
import { BLOB_PERIOD_MS } from "../../../../shared/agent-api/blobs/blob-refs.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { buildingOn } from "../../../support/cluster/building.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";
import { able } from "../../../support/fakes/fake-machine.ts";

const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
const LONG = { nodeLostMs: 600_000, nodeTimeoutMs: 600_000 };

let cluster: Cluster;
let home: FakeAgent;
let other: FakeAgent;
afterEach(() => cluster.stop());

async function begin(capabilities: object): Promise<void> {
  cluster = await startCluster({
    agents: 2,
    agent: { heartbeatMs: 0, facts: { maxSandboxes: 2, capabilities: { ...able, ...capabilities } } },
    config: { buildPollMs: 20, placementTimeoutMs: 10_000, ...LONG },
  });
  const [first, second] = cluster.agents;
  if (first === undefined || second === undefined) throw new Error("the cluster has too few nodes");
  [home, other] = [first, second];
  await setStatus(other, "standby");
}

const { built, create } = buildingOn(() => cluster);
const { create: createBase, pause } = sandboxesOn(() => cluster);

async function setStatus({ nodeId }: FakeAgent, status: "ready" | "standby"): Promise<void> {
  const answer = await cluster.ask("POST", `/nodes/${nodeId}`, { ...admin, body: { status } });
  expect(answer.status, answer.text).toBe(204);
}

interface Shown {
  readonly id: string;
  readonly placement: { readonly fits: boolean; readonly reason?: string };
}

/** Of each node, why it does not take a sandbox of the template; undefined: it does. */
async function explained(template: string): Promise<Record<string, string | undefined>> {
  const answer = await cluster.ask("GET", `/nodes?explain=${template}`, admin);
  expect(answer.status, answer.text).toBe(200);
  return Object.fromEntries((answer.body as Shown[]).map(({ id, placement }) => [id, placement.reason]));
}

test("a node that can fetch the memory of a template is named as its second place, and as its place when the first is full", async () => {
  await begin({ peers: true });
  const { templateID } = await built("app", { startCmd: "serve" });
  await setStatus(other, "ready");
  expect(await explained(templateID)).toEqual({
    [home.nodeId]: undefined,
    [other.nodeId]: `starts it only when node ${home.nodeId}, which has the snapshot, does not`,
  });
  for (let count = 0; count < 2; count++) expect((await create("app")).status).toBe(201);
  await home.beat();
  expect(await explained(templateID)).toEqual({
    [home.nodeId]: "is at its limit of 2 sandboxes",
    [other.nodeId]: undefined,
  });
});

test("a node that cannot have the memory or the image of a template is not said to take it", async () => {
  await begin({ peers: false });
  const { templateID: withMemory } = await built("memory", { startCmd: "serve" });
  const { templateID: withImage } = await built("image");
  await setStatus(other, "ready");
  expect((await explained(withMemory))[other.nodeId]).toBe("does not have the snapshot that it starts from");
  expect((await explained(withImage))[other.nodeId]).toBe("does not have the template's image");
});

test("a named snapshot is explained by the node that has it", async () => {
  await begin({ peers: false });
  const { sandboxID } = await createBase();
  const made = await cluster.ask("POST", `/sandboxes/${sandboxID}/snapshots`, { body: { name: "kept" } });
  expect(made.status, made.text).toBe(201);
  await setStatus(other, "ready");
  const [snapshot] = (await cluster.ask("GET", "/snapshots")).body as { templateID: string }[];
  expect(await explained(snapshot?.templateID ?? "")).toEqual({
    [home.nodeId]: undefined,
    [other.nodeId]: "does not have the snapshot that it starts from",
  });
});

test("a node shows why starts failed there, its builds, and the images that it has", async () => {
  await begin({});
  home.onStart = () => {
    throw new AppError("internal", "runc: no such device");
  };
  expect((await create("base")).status).toBe(500);
  const { body } = await cluster.ask("GET", `/nodes/${home.nodeId}`, admin);
  expect(body).toMatchObject({
    createFails: 1,
    lastErrors: [{ errorCode: "internal", message: expect.stringContaining("no such device") as string }],
    buildCount: 0,
    cachedBuilds: [],
  });
  home.onStart = (_start, run) => run();
  // The build does not end.
  home.onBuild = () => undefined;
  const requested = await cluster.ask("POST", "/v3/templates", { body: { name: "long" } });
  const { templateID, buildID } = requested.body as { templateID: string; buildID: string };
  await cluster.ask("POST", `/v2/templates/${templateID}/builds/${buildID}`, { body: {} });
  const counts = async () =>
    ((await cluster.ask("GET", "/nodes", admin)).body as { buildCount: number }[]).map(({ buildCount }) => buildCount);
  await expect.poll(counts, { timeout: 20_000 }).toEqual([1, 0]);
  home.load = { ...home.load, images: [{ buildId: buildID }] };
  await home.beat();
  expect((await cluster.ask("GET", `/nodes/${home.nodeId}`, admin)).body).toMatchObject({ cachedBuilds: [buildID] });
});

test("a paused sandbox and a snapshot say where they are, how far their upload is, and what the loss of the node means", async () => {
  await begin({ blobStore: true });
  const paused = await createBase();
  const made = await cluster.ask("POST", `/sandboxes/${paused.sandboxID}/snapshots`, { body: {} });
  expect(made.status, made.text).toBe(201);
  await pause(paused.sandboxID);
  const both = async () => {
    await home.beat();
    const sandbox = (await cluster.ask("GET", `/sandboxes/${paused.sandboxID}`)).body as { place?: object };
    const [snapshot] = (await cluster.ask("GET", "/snapshots")).body as { place: object }[];
    return [sandbox.place, snapshot?.place];
  };
  const report = (stored: object) => {
    for (const [id, snapshot] of home.snapshots) home.snapshots.set(id, { ...snapshot, ...stored });
  };
  const nodeID = home.nodeId;
  const only = { nodeID, inStore: false, upload: null };
  const lost = "it is lost with the node: it is there only, and not in the blob store";
  expect(await both()).toEqual([
    { ...only, ifNodeIsLost: lost },
    { ...only, ifNodeIsLost: lost },
  ]);
  report({ stored: { doneBytes: 3 * 2 ** 20, totalBytes: 8 * 2 ** 20 } });
  const underWay = {
    ...only,
    upload: { doneBytes: 3 * 2 ** 20, totalBytes: 8 * 2 ** 20, failure: null },
    ifNodeIsLost: "it is lost with the node: its upload to the blob store is under way (3 of 8 MiB)",
  };
  expect(await both()).toEqual([underWay, underWay]);
  // Whose snapshot it is does not learn where the platform's store is.
  report({ stored: { failure: "the store s3://ours/folder is full" } });
  const failed = {
    upload: { failure: "the last try failed, and the platform's operators see why" },
    ifNodeIsLost: "it is lost with the node: its upload to the blob store failed, and is tried again",
  };
  expect(await both()).toMatchObject([failed, failed]);
  report({ stored: { ref: `${"a".repeat(64)}.${Math.floor(Date.now() / BLOB_PERIOD_MS)}`, bytes: 1_000 } });
  const stored = {
    nodeID,
    inStore: true,
    upload: null,
    ifNodeIsLost: "it starts on another node, from the blob store",
  };
  expect(await both()).toEqual([stored, stored]);
});

test("the loss of a node and its return are in the audit log and among its events, once each", async () => {
  await begin({});
  await cluster.restart({ nodeTimeoutMs: 1_000, nodeLostMs: 1_500 });
  const beating = setInterval(() => void other.beat().catch(() => undefined), 200);
  onTestFinished(() => clearInterval(beating));
  const actions = async () => {
    const answer = await cluster.ask("GET", `/admin/audit?object=${home.nodeId}&objectKind=node&order=asc`, admin);
    return (answer.body as { action: string }[])
      .map(({ action }) => action)
      .filter((action) => action.endsWith("Node"));
  };
  await expect.poll(actions, { timeout: 30_000 }).toEqual(["loseNode"]);
  // Several rounds go by.
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await actions()).toEqual(["loseNode"]);
  await home.beat();
  // It is silent again, and so is lost again after a while.
  await expect.poll(async () => (await actions()).slice(0, 2), { timeout: 30_000 }).toEqual(["loseNode", "regainNode"]);
  const kinds = async () => {
    const { body } = await cluster.ask("GET", `/nodes/${home.nodeId}`, admin);
    const { events } = body as { events: { kind: string }[] };
    // Whether its silence is seen before its loss is a matter of milliseconds.
    return events.toReversed().flatMap(({ kind }) => (kind === "unreachable" ? [] : [kind]));
  };
  const all = ["ready", "lost", "returned", "ready"];
  await expect.poll(async () => (await kinds()).slice(0, all.length), { timeout: 30_000 }).toEqual(all);
});
