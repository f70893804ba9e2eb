/** Many starts at once on a node that works on one at a time: they wait in order, projects take turns, and who leaves leaves nothing. */

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ADMIN_TOKEN, type Answer, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import type { Started } from "../../../support/fakes/fake-agent-shapes.ts";

/** The node has four turns, of which one project has three. */
const ONE_PROJECT = 3;
const WAIT = { timeout: 60_000 };
const ROOMY = {
  maxProjectSandboxes: 300,
  rateLimitCreatePerSecond: 10_000,
  // Only the test ends a start.
  startTimeoutMs: 300_000,
  placementTimeoutMs: 300_000,
};

let cluster: Cluster;
let other: { readonly key: string; readonly teamId: string };
let third: { readonly key: string; readonly teamId: string };
beforeAll(async () => {
  cluster = await startCluster({ config: ROOMY, agent: { facts: { startsAtOnce: 1 } } });
  other = await cluster.addProject("other");
  third = await cluster.addProject("third");
}, 120_000);
afterAll(() => cluster.stop());

/** Starts that the node works on, in the order in which it was asked; each ends when the test says so. */
let held: { readonly start: Started; readonly end: () => void }[] = [];
let most = 0;
beforeEach(() => {
  held = [];
  most = 0;
  cluster.agent.starts.length = 0;
  cluster.agent.onStart = (start, run) =>
    new Promise((resolve) => {
      const one = {
        start,
        end() {
          held.splice(held.indexOf(one), 1);
          run();
          resolve();
        },
      };
      held.push(one);
      most = Math.max(most, held.length);
    });
});
afterEach(async () => {
  cluster.agent.onStart = (_start, run) => run();
  for (const { end } of held.slice()) end();
  for (const { key } of [cluster, other, third]) {
    const { body } = await cluster.ask("GET", "/v2/sandboxes?state=running,paused", { key });
    for (const { sandboxID } of body as { sandboxID: string }[])
      await cluster.ask("DELETE", `/sandboxes/${sandboxID}`, { key });
  }
}, 120_000);

const create = (key = cluster.key, more: object = {}) =>
  cluster.ask("POST", "/v2/sandboxes", { key, body: { templateID: "base", ...more } });
const idOf = (made: Answer | undefined) => (made as unknown as { body: { sandboxID: string } }).body.sandboxID;
const asked = () => cluster.agent.starts.map(({ body }) => body.projectId);
const reached = (count: number) => expect.poll(() => asked().length, WAIT).toBe(count);

async function waiting(): Promise<number> {
  const headers = { "x-admin-token": ADMIN_TOKEN };
  const { text } = await cluster.ask("GET", "/metrics", { key: null, headers });
  return Number(/^svc_node_starts_waiting\{node="n1"\} (\d+)$/m.exec(text)?.[1]);
}

async function endAll(answers: readonly Promise<Answer>[]): Promise<readonly Answer[]> {
  let over = false;
  const all = Promise.all(answers).finally(() => (over = true));
  await expect
    .poll(() => {
      for (const { end } of held.slice()) end();
      return over;
    }, WAIT)
    .toBe(true);
  return all;
}

test("a hundred creates at once all start, and the node is asked for a few at a time", async () => {
  const creates = Array.from({ length: 100 }, () => create());
  await reached(ONE_PROJECT);
  await expect.poll(waiting, WAIT).toBe(100 - ONE_PROJECT);
  const answers = await endAll(creates);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  expect([cluster.agent.starts.length, most, await waiting()]).toEqual([100, ONE_PROJECT, 0]);
}, 180_000);

test("the burst of one project delays the single create of another one by no start, and of a third one by one start", async () => {
  const burst = Array.from({ length: 10 }, () => create());
  await reached(ONE_PROJECT);
  await expect.poll(waiting, WAIT).toBe(7);
  const single = create(other.key);
  await reached(4);
  const late = create(third.key);
  await expect.poll(waiting, WAIT).toBe(8);
  held[0]?.end();
  await reached(5);
  held[0]?.end();
  await reached(6);
  const { teamId: burstId } = cluster;
  expect(asked()).toEqual([burstId, burstId, burstId, other.teamId, burstId, third.teamId]);
  for (const answer of await endAll([...burst, single, late])) expect(answer.status).toBe(201);
}, 180_000);

test("a create whose caller leaves while it waits is never sent to the node, and the next one is", async () => {
  const first = Array.from({ length: ONE_PROJECT }, () => create());
  await reached(ONE_PROJECT);
  const leaving = new AbortController();
  const left = fetch(`${cluster.url}/v2/sandboxes`, {
    method: "POST",
    headers: { "x-api-key": cluster.key, "content-type": "application/json" },
    body: JSON.stringify({ templateID: "base", metadata: { who: "left" } }),
    signal: leaving.signal,
  });
  await expect.poll(waiting, WAIT).toBe(1);
  const next = create(cluster.key, { metadata: { who: "next" } });
  await expect.poll(waiting, WAIT).toBe(2);
  leaving.abort(new Error("left"));
  await expect(left).rejects.toThrow("left");
  await expect.poll(waiting, WAIT).toBe(1);
  const answers = await endAll([...first, next]);
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
  expect(cluster.agent.starts.length).toBe(4);
  const { body } = await cluster.ask("GET", "/v2/sandboxes?state=running,paused");
  expect((body as { metadata?: { who?: string } }[]).map(({ metadata }) => metadata?.who).filter(Boolean)).toEqual([
    "next",
  ]);
}, 180_000);

test("a resume does not wait behind the creates of its project", async () => {
  const creating = create();
  const [made] = await endAll([creating]);
  const sandboxID = idOf(made);
  expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`, { body: {} })).status).toBe(204);
  const burst = Array.from({ length: 6 }, () => create());
  await reached(1 + ONE_PROJECT);
  await expect.poll(waiting, WAIT).toBe(3);
  const resume = cluster.ask("POST", `/sandboxes/${sandboxID}/connect`, { body: { timeout: 600 } });
  await reached(2 + ONE_PROJECT);
  expect(cluster.agent.starts.at(-1)?.body.sandboxId).toBe(sandboxID);
  const answers = await endAll([...burst, resume]);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
}, 180_000);

test("the forks of one request, and the sandboxes of one create, take the turns of their project", async () => {
  const [made] = await endAll([create()]);
  const sandboxID = idOf(made);
  const forks = cluster.ask("POST", `/sandboxes/${sandboxID}/fork`, { body: { count: 6 } });
  await reached(1 + ONE_PROJECT);
  const many = create(cluster.key, { count: 6 });
  await expect.poll(waiting, WAIT).toBe(9);
  const answers = await endAll([forks, many]);
  for (const { body } of answers)
    expect((body as { sandbox?: object }[]).filter(({ sandbox }) => sandbox !== undefined)).toHaveLength(6);
  expect(most).toBe(ONE_PROJECT);
}, 180_000);

test("a create that has no turn within the limit of its request is answered with 503 cluster_at_capacity", async () => {
  const short = await startCluster({
    // Long enough for the starts that have a turn to get it.
    config: { ...ROOMY, startQueueMs: 3_000 },
    agent: { facts: { startsAtOnce: 1 } },
  });
  try {
    short.agent.onStart = () => new Promise<void>(() => undefined);
    for (let index = 0; index < ONE_PROJECT; index++)
      void short.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } }).catch(String);
    await expect.poll(() => short.agent.starts.length, WAIT).toBe(ONE_PROJECT);
    const { body } = await short.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    expect(body).toMatchObject({ code: 503, error_code: "cluster_at_capacity" });
    expect(short.agent.starts).toHaveLength(ONE_PROJECT);
  } finally {
    await short.stop();
  }
}, 120_000);

test("what has no turn on a node that hangs is started on another one", async () => {
  const two = await startCluster({ agents: 2, config: ROOMY, agent: { facts: { startsAtOnce: 1 } } });
  try {
    const [hanging, other] = two.agents;
    if (hanging === undefined || other === undefined) throw new Error("two agents were asked for");
    hanging.onStart = () => new Promise<void>(() => undefined);
    const answers: Answer[] = [];
    for (let index = 0; index < 12; index++) {
      void two
        .ask("POST", "/v2/sandboxes", { body: { templateID: "base" } })
        .then((answer) => answers.push(answer), String);
    }
    await expect.poll(() => answers.length + hanging.starts.length, WAIT).toBe(12);
    expect(hanging.starts.length).toBeLessThanOrEqual(ONE_PROJECT);
    expect(other.live.size).toBe(answers.length);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  } finally {
    await two.stop();
  }
}, 120_000);
