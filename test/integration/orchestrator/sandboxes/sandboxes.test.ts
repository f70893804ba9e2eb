/** The life of a sandbox through the front door, on a fake agent. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { CLOSED, OPEN } from "../../../../shared/policy/egress-policy.ts";
import { type Answer, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { expectEnd, sandboxesOn } from "../../../support/cluster/sandboxes.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());

const { create, read } = sandboxesOn(() => cluster);

function runs(id: string): boolean {
  return [...cluster.agent.live.values()].some(({ body }) => body.sandboxId === id);
}

function secondsLeft({ endAt }: SandboxDetail): number {
  return (Date.parse(endAt) - Date.now()) / 1000;
}

test("create answers with everything a client needs, and the node runs the requested sandbox", async () => {
  const sandbox = await create({ envVars: { A: "1" }, metadata: { user: "x" } });
  expect(sandbox.sandboxID).toMatch(/^i[a-z0-9]{19}$/);
  expect(sandbox).toMatchObject({
    clientID: "6532622b",
    envdVersion: "0.6.13",
    alias: "base",
    trafficAccessToken: null,
  });
  expect(sandbox.envdAccessToken).toMatch(/^[0-9a-f]{64}$/);
  const started = cluster.agent.starts.at(-1);
  expect(started?.body).toMatchObject({
    sandboxId: sandbox.sandboxID,
    envs: { A: "1" },
    egress: OPEN,
    accessToken: sandbox.envdAccessToken,
    onTimeout: "kill",
    build: { templateId: sandbox.templateID, image: "svc/base:latest" },
  });
  const detail = await read(sandbox.sandboxID);
  expect(detail).toMatchObject({
    templateID: sandbox.templateID,
    state: "running",
    metadata: { user: "x" },
    allowInternetAccess: null,
    lifecycle: { autoResume: false, onTimeout: "kill" },
    cpuCount: 2,
    memoryMB: 1024,
    diskSizeMB: 10_240,
  });
});

test("a sandbox that is created without a timeout lives 300 s on v2 and 15 s on v1", async () => {
  for (const [version, seconds] of [
    ["/v2", 300],
    ["", 15],
  ] as const) {
    const asked = Date.now();
    const { sandboxID } = await create({}, version);
    expectEnd(await read(sandboxID), asked, seconds);
  }
});

test("ends are the same in two reads, and ids with a client id are accepted", async () => {
  const { sandboxID } = await create();
  const [first, second] = [await read(sandboxID), await read(`${sandboxID}-6532622b`)];
  expect(second).toEqual(first);
});

test.each([
  [{ allow_internet_access: false }, false, false],
  [{ allow_internet_access: true }, true, true],
  [{ network: { denyOut: ["0.0.0.0/0"] } }, null, false],
])("internet: %j reads back %j and the node gets %j", async (body, shown, told) => {
  const { sandboxID } = await create(body);
  expect((await read(sandboxID)).allowInternetAccess).toBe(shown);
  expect(cluster.agent.starts.at(-1)?.body.egress).toEqual(told ? OPEN : CLOSED);
});

test("ingress options are kept, shown, and make a traffic token", async () => {
  const network = { allowPublicTraffic: false, maskRequestHost: "localhost:${PORT}", httpsPorts: [8443] };
  const sandbox = await create({ network });
  expect(sandbox.trafficAccessToken).toMatch(/^[0-9a-f]{64}$/);
  expect((await read(sandbox.sandboxID)).network).toEqual(network);
  const again = await cluster.ask("POST", `/v2/sandboxes/${sandbox.sandboxID}/connect`);
  expect(again.body).toEqual(sandbox);
});

describe("connect", () => {
  test("extends and never shortens, even by a millisecond", async () => {
    const { sandboxID } = await create({ timeout: 600 });
    const before = (await read(sandboxID)).endAt;
    expect((await cluster.ask("POST", `/v2/sandboxes/${sandboxID}/connect`, { body: { timeout: 10 } })).status).toBe(
      200,
    );
    expect((await read(sandboxID)).endAt).toBe(before);
    const asked = Date.now();
    await cluster.ask("POST", `/v2/sandboxes/${sandboxID}/connect`, { body: { timeout: 1200 } });
    expectEnd(await read(sandboxID), asked, 1200);
  });

  test("needs no body in v2, and in v1 a timeout, which may be 0", async () => {
    const { sandboxID } = await create();
    expect((await cluster.ask("POST", `/v2/sandboxes/${sandboxID}/connect`)).status).toBe(200);
    expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/connect`)).status).toBe(400);
    expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/connect`, { body: { timeout: 0 } })).status).toBe(200);
  });

  test("an unknown sandbox is 404 with an integer code", async () => {
    const answer = await cluster.ask("POST", "/v2/sandboxes/iunknown/connect", { body: {} });
    expect(answer.status).toBe(404);
    expect(answer.body).toMatchObject({
      code: 404,
      message: `Sandbox "iunknown" doesn't exist or you don't have access to it`,
    });
  });
});

describe("timeout and refreshes", () => {
  test("timeout sets the end from now, and may shorten", async () => {
    const { sandboxID } = await create({ timeout: 600 });
    const asked = Date.now();
    const answer = await cluster.ask("POST", `/sandboxes/${sandboxID}/timeout`, { body: { timeout: 60 } });
    expect([answer.status, answer.text]).toEqual([204, ""]);
    expectEnd(await read(sandboxID), asked, 60);
    await expect
      .poll(() => cluster.agent.starts.find(({ body }) => body.sandboxId === sandboxID)?.endAt)
      .toBe(Date.parse((await read(sandboxID)).endAt));
  });

  test.each([0, -5])("timeout %i ends it now", async (timeout) => {
    const { sandboxID } = await create();
    expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/timeout`, { body: { timeout } })).status).toBe(204);
    await expect.poll(() => runs(sandboxID)).toBe(false);
    await expect.poll(async () => (await cluster.ask("GET", `/sandboxes/${sandboxID}`)).status).toBe(404);
  });

  test("a longer life than the project allows is cut to what is left", async () => {
    const { sandboxID } = await create();
    await cluster.ask("POST", `/sandboxes/${sandboxID}/timeout`, { body: { timeout: 1_000_000 } });
    expect(Math.round(secondsLeft(await read(sandboxID)) / 60)).toBe(24 * 60);
  });

  test("refreshes extend, and less than 15 s counts as 15 s", async () => {
    const { sandboxID } = await create({ timeout: 14 });
    const first = Date.now();
    expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/refreshes`)).status).toBe(204);
    expectEnd(await read(sandboxID), first, 15);
    const second = Date.now();
    await cluster.ask("POST", `/sandboxes/${sandboxID}/refreshes`, { body: { duration: 100 } });
    await cluster.ask("POST", `/sandboxes/${sandboxID}/refreshes`, { body: { duration: 1 } });
    expectEnd(await read(sandboxID), second, 100);
  });

  test("a sandbox with a second to live is gone soon after it", async () => {
    const asked = Date.now();
    const { sandboxID } = await create({ timeout: 1 });
    await expect.poll(() => runs(sandboxID), { interval: 10 }).toBe(false);
    expect(Date.now() - asked).toBeGreaterThanOrEqual(999);
  });
});

describe("kill", () => {
  test("answers 204 and removes the sandbox from the node, from lists, from reads and from the routing table", async () => {
    const { sandboxID } = await create();
    expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);
    expect(runs(sandboxID)).toBe(false);
    expect((await cluster.ask("GET", `/sandboxes/${sandboxID}`)).status).toBe(404);
    expect((await cluster.ask("GET", "/v2/sandboxes")).text).not.toContain(sandboxID);
    const routed = await fetch(`${cluster.edgeUrl}/health`, {
      headers: { "e2b-sandbox-id": sandboxID, "e2b-sandbox-port": "49983" },
    });
    expect(routed.status).toBe(502);
    expect(await routed.json()).toMatchObject({ message: "The sandbox was not found", code: 502 });
    expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`)).body).toMatchObject({ code: 404 });
  });

  test("of ten kills at once all succeed, and the node gets one request", async () => {
    const { sandboxID } = await create();
    const { executionId } = [...cluster.agent.live.values()].find(({ body }) => body.sandboxId === sandboxID) ?? {};
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => cluster.ask("DELETE", `/sandboxes/${sandboxID}`)),
    );
    const statuses = answers.map(({ status }) => status);
    expect(statuses).toContain(204);
    expect(statuses.every((status) => status === 204 || status === 404)).toBe(true);
    expect(cluster.agent.stops.filter((id) => id === executionId)).toHaveLength(1);
    const events = (await cluster.ask("GET", `/events/sandboxes/${sandboxID}?orderAsc=true`)).body as {
      type: string;
    }[];
    expect(events.map(({ type }) => type)).toEqual(["sandbox.lifecycle.created", "sandbox.lifecycle.killed"]);
  });
});

test("another project gets 404 for the sandbox on every route", async () => {
  const { sandboxID } = await create();
  const { key } = await cluster.addProject("stranger");
  const calls: [string, string, object?][] = [
    ["GET", `/sandboxes/${sandboxID}`],
    ["DELETE", `/sandboxes/${sandboxID}`],
    ["POST", `/v2/sandboxes/${sandboxID}/connect`, {}],
    ["POST", `/sandboxes/${sandboxID}/timeout`, { timeout: 5 }],
    ["POST", `/sandboxes/${sandboxID}/refreshes`, {}],
    ["GET", `/sandboxes/${sandboxID}/metrics`],
    ["GET", `/sandboxes/${sandboxID}/logs`],
    ["GET", `/v2/sandboxes/${sandboxID}/logs`],
  ];
  const answers = await Promise.all(
    calls.map(([method, path, body]) => cluster.ask(method, path, { key, ...(body === undefined ? {} : { body }) })),
  );
  expect(answers.map(({ status }) => status)).toEqual(calls.map(() => 404));
  expect((await cluster.ask("GET", "/v2/sandboxes", { key })).body).toEqual([]);
  expect((await cluster.ask("GET", `/sandboxes/metrics?sandbox_ids=${sandboxID}`, { key })).body).toEqual({
    sandboxes: {},
  });
  expect((await cluster.ask("GET", `/events/sandboxes/${sandboxID}`, { key })).body).toEqual([]);
  expect(runs(sandboxID)).toBe(true);
});

test("metrics and logs come from the node, in the shapes of the contract", async () => {
  const { sandboxID } = await create();
  const at = Date.now();
  cluster.agent.metrics = [
    { at, cpuCount: 2, cpuUsedPct: 1.5, memUsed: 1, memTotal: 2, memCache: 3, diskUsed: 4, diskTotal: 5 },
  ];
  cluster.agent.logs = [
    { timestamp: new Date(at).toISOString(), level: "info", message: "hello", fields: { pid: "1" } },
  ];
  const metric = { timestamp: new Date(at).toISOString(), timestampUnix: Math.floor(at / 1000), memTotal: 2 };
  expect((await cluster.ask("GET", `/sandboxes/${sandboxID}/metrics`)).body).toEqual([expect.objectContaining(metric)]);
  expect((await cluster.ask("GET", `/sandboxes/${sandboxID}/metrics?start=1&end=2`)).body).toEqual([]);
  expect((await cluster.ask("GET", `/sandboxes/metrics?sandbox_ids=${sandboxID},iunknown`)).body).toEqual({
    sandboxes: { [sandboxID]: expect.objectContaining(metric) as unknown },
  });
  const v1 = (await cluster.ask("GET", `/sandboxes/${sandboxID}/logs`)).body as { logs: { line: string }[] };
  expect(JSON.parse(v1.logs[0]?.line ?? "")).toEqual({ pid: "1", logger: "process", level: "info", message: "hello" });
  const v2 = (await cluster.ask("GET", `/v2/sandboxes/${sandboxID}/logs`)).body as { logs: unknown[] };
  expect(v2.logs).toEqual(cluster.agent.logs);
});

test("the logs of a sandbox can be read after its end, by its own project only", async () => {
  const { sandboxID } = await create();
  cluster.agent.logs = [
    { timestamp: new Date().toISOString(), level: "info", message: "last words", fields: { pid: "1" } },
  ];
  expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);
  const { key } = await cluster.addProject("neighbour");
  for (const path of [`/sandboxes/${sandboxID}/logs`, `/v2/sandboxes/${sandboxID}/logs`]) {
    const { status, body } = await cluster.ask("GET", path);
    expect([path, status, JSON.stringify(body)]).toEqual([path, 200, expect.stringContaining("last words")]);
    expect((await cluster.ask("GET", path, { key })).status).toBe(404);
  }
  expect((await cluster.ask("GET", `/sandboxes/${sandboxID}`)).status).toBe(404);
  expect((await cluster.ask("GET", `/sandboxes/${sandboxID}/metrics`)).status).toBe(404);
});

test("a sandbox whose process exited is gone at once, and its event has the reason", async () => {
  const { sandboxID } = await create();
  const { executionId = "" } = [...cluster.agent.live.values()].find(({ body }) => body.sandboxId === sandboxID) ?? {};
  await cluster.agent.reportExit(executionId, "oom");
  expect((await cluster.ask("GET", `/sandboxes/${sandboxID}`)).status).toBe(404);
  const events = (await cluster.ask("GET", `/events/sandboxes/${sandboxID}`)).body as { eventData: unknown }[];
  expect(events[0]).toMatchObject({ type: "sandbox.lifecycle.killed", eventData: { reason: "out_of_memory" } });
});

test("the concurrency limit holds in a burst", async () => {
  const small = await startCluster({ config: { maxProjectSandboxes: 3 } });
  try {
    const answers: Answer[] = await Promise.all(
      Array.from({ length: 10 }, () => small.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } })),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(7);
    expect(refused[0]?.body).toMatchObject({ code: 429, error_code: "too_many_sandboxes" });
    expect(refused[0]?.text).toContain("maximum number of concurrent sandboxes (3)");
    expect(small.agent.live.size).toBe(3);
  } finally {
    await small.stop();
  }
});
