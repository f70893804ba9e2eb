/** A restart loses no sandbox, and completes the operations that a crash interrupted. */

import { afterEach, beforeEach, expect, test } from "vitest";
import { OPEN } from "../../../../shared/policy/egress-policy.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";

let cluster: Cluster;
beforeEach(async () => {
  cluster = await startCluster({ config: { orphanGraceMs: 200, missingGraceMs: 200 } });
});
afterEach(() => cluster.stop());

const { create, routed } = sandboxesOn(() => cluster);

test("running sandboxes stay, with their routes, tokens and ends; expired ones are gone", async () => {
  const { sandboxID: id } = await create({ metadata: { a: "1" } });
  const { sandboxID: short } = await create({ timeout: 1 });
  const before = (await cluster.ask("GET", `/sandboxes/${id}`)).body;
  await cluster.restart();
  expect((await cluster.ask("GET", `/sandboxes/${id}`)).body).toEqual(before);
  await expect.poll(async () => (await cluster.ask("GET", `/sandboxes/${short}`)).status).toBe(404);
  await expect.poll(() => cluster.agent.live.size).toBe(1);
  // The edge has a route to the sandbox: the fake address refuses, but the edge knows the sandbox.
  expect(await routed(id)).not.toContain("The sandbox was not found");
  expect((await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } })).status).toBe(201);
});

test("an unknown execution is held after its grace period, and not before", async () => {
  const { agent } = cluster;
  const template = agent.pools()[0]?.build ?? { templateId: "t", buildId: "b", image: "i" };
  agent.live.set("00000000-0000-4000-8000-000000000001", {
    executionId: "00000000-0000-4000-8000-000000000001",
    startedAt: Date.now(),
    egress: OPEN,
    endAt: Date.now() + 60_000,
    body: {
      sandboxId: "iorphan",
      build: template,
      resources: { cpuCount: 1, memoryMB: 128, diskSizeMB: 0 },
      egress: OPEN,
      envs: {},
      accessToken: "0000000000000000",
      endAt: Date.now() + 60_000,
      onTimeout: "kill",
    },
  });
  expect((await agent.beat()).stop).toEqual([]);
  // In the answer to a report of this test, or to one that the agent sends by itself meanwhile.
  await expect
    .poll(async () => {
      await agent.beat();
      return [...new Set(agent.holds)];
    })
    .toEqual(["00000000-0000-4000-8000-000000000001"]);
});

test("a sandbox its node no longer reports is lost, with an event", async () => {
  const { sandboxID: id } = await create();
  cluster.agent.live.clear();
  await expect
    .poll(async () => {
      await cluster.agent.beat();
      return (await cluster.ask("GET", `/sandboxes/${id}`)).status;
    })
    .toBe(404);
  const last = async () =>
    ((await cluster.ask("GET", `/events/sandboxes/${id}`)).body as { eventData: unknown }[])[0]?.eventData;
  await expect.poll(last).toMatchObject({ reason: "lost", kill_reason: "lost" });
});

test("a silent node is unhealthy, then its sandboxes are lost; when it returns it is asked to stop them", async () => {
  // The node is not silent for long enough before the sandbox is there, however slow the machine is.
  const patient = { nodeTimeoutMs: 600_000, nodeLostMs: 600_000 };
  const lonely = await startCluster({ config: patient, agent: { heartbeatMs: 0 } });
  try {
    const created = await lonely.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    expect(created.status, created.text).toBe(201);
    await lonely.restart({ nodeTimeoutMs: 3_000, nodeLostMs: 4_000 });
    const id = (created.body as { sandboxID: string }).sandboxID;
    const admin = { key: null, headers: { "x-admin-token": "test-admin-token-0001" } };
    const status = async () => ((await lonely.ask("GET", "/nodes/n1", admin)).body as { status: string }).status;
    await expect.poll(status, { timeout: 30_000 }).toBe("unhealthy");
    expect((await lonely.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } })).body).toMatchObject({
      code: 503,
      error_code: "no_compatible_node",
    });
    await expect.poll(async () => (await lonely.ask("GET", `/sandboxes/${id}`)).status, { timeout: 30_000 }).toBe(404);
    expect(lonely.agent.live.size).toBe(1);
    await lonely.agent.beat();
    expect(lonely.agent.live.size).toBe(0);
    // On a busy machine the limit of silence may pass between a report and the look.
    const heard = async () => {
      await lonely.agent.beat();
      return status();
    };
    await expect.poll(heard).toBe("ready");
  } finally {
    await lonely.stop();
  }
});

test("a drained node gets no new sandbox and keeps its running ones", async () => {
  const { sandboxID: id } = await create();
  const admin = { key: null, headers: { "x-admin-token": "test-admin-token-0001" } };
  const want = async (status: string) =>
    (await cluster.ask("POST", "/nodes/n1", { ...admin, body: { status } })).status;
  expect(await want("draining")).toBe(204);
  expect((await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } })).status).toBe(503);
  expect((await cluster.ask("GET", `/sandboxes/${id}`)).status).toBe(200);
  expect(await want("standby")).toBe(409);
  expect(await want("unhealthy")).toBe(409);
  await cluster.restart();
  await cluster.agent.beat();
  expect((await cluster.ask("GET", "/nodes/n1", admin)).body).toMatchObject({ status: "draining" });
  expect(await want("ready")).toBe(204);
  await create();
});

test("a wrong end on the node is corrected in the answer to its next report", async () => {
  const { sandboxID: id } = await create();
  const started = [...cluster.agent.live.values()][0];
  if (started === undefined) throw new Error("nothing runs");
  started.endAt = 5;
  await cluster.agent.beat();
  const { endAt } = (await cluster.ask("GET", `/sandboxes/${id}`)).body as { endAt: string };
  expect(started.endAt).toBe(Date.parse(endAt));
});
