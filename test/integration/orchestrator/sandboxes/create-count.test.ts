/** Several sandboxes by one create, on a fake agent: each is as if it were asked for alone. */

import { setTimeout } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AuditEntry } from "../../../../shared/api/audit.ts";
import type { Sandbox, StartResult } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { ADMIN_TOKEN, type Answer, type Ask, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { gateway } from "../../../support/runner/promises.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ config: { maxProjectSandboxes: 30, rateLimitCreatePerSecond: 10_000 } });
});
afterAll(() => cluster.stop());

const onStart = (_start: object, run: () => void) => run();
beforeEach(async () => {
  Object.assign(cluster.agent, { onStart, load: {} });
  cluster.agent.starts.length = 0;
  await cluster.agent.beat();
});
afterEach(async () => {
  for (const { sandboxID } of await listed()) await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
});

/** Twenty of a caller in a minute (orchestrator/audit/refusals.ts), and a request may reach into the next one. */
const MOST_REFUSALS = 40;

const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
const create = (count: number | undefined, more: object = {}, ask: Ask = {}): Promise<Answer> =>
  cluster.ask("POST", "/v2/sandboxes", { ...ask, body: { templateID: "base", count, ...more } });
const listed = async () => (await cluster.ask("GET", "/v2/sandboxes")).body as Sandbox[];
const results = ({ body }: Answer) => body as StartResult[];
const entriesOf = async (answer: Answer) =>
  (await cluster.ask("GET", `/admin/audit?order=asc&requestID=${answer.headers.get("x-request-id") ?? ""}`, admin))
    .body as AuditEntry[];

test("five are asked for: five run, each with an id, a token and an address of its own, and the options of all", async () => {
  const answer = await create(5, { metadata: { swarm: "a" }, timeout: 600, envVars: { A: "b" } });
  expect(answer.status).toBe(201);
  const sandboxes = results(answer).map(({ sandbox }) => sandbox as Sandbox);
  expect(new Set(sandboxes.map(({ sandboxID }) => sandboxID)).size).toBe(5);
  expect(new Set(sandboxes.map(({ envdAccessToken }) => envdAccessToken)).size).toBe(5);
  const starts = cluster.agent.starts.map(({ body }) => body);
  expect(new Set(starts.map(({ sandboxId }) => sandboxId))).toEqual(
    new Set(sandboxes.map(({ sandboxID }) => sandboxID)),
  );
  for (const { envs } of starts) expect(envs).toEqual({ A: "b" });
  for (const one of sandboxes) {
    expect((await cluster.ask("GET", `/sandboxes/${one.sandboxID}`)).body).toMatchObject({ metadata: { swarm: "a" } });
  }
});

test.each([undefined, 1])("count %s is answered by one sandbox, as without it", async (count) => {
  expect((await create(count)).body).toMatchObject({ sandboxID: expect.any(String) as string });
});

test("each has an event, and an audit entry with its end; the request has one that says how many", async () => {
  const answer = await create(3);
  const ids = results(answer).map(({ sandbox }) => sandbox?.sandboxID);
  await expect.poll(() => entriesOf(answer)).toHaveLength(7);
  const entries = await entriesOf(answer);
  for (const id of ids) {
    const own = entries.filter(({ object }) => object.id === id);
    expect(own).toMatchObject([
      { action: "create", result: "begun", details: { count: 3 } },
      { action: "create", result: "done", status: 201, refersTo: own[0]?.seq },
    ]);
  }
  expect(entries.filter(({ object }) => object.id === null)).toMatchObject([
    { action: "create", result: "done", status: 201, details: { count: 3, templateID: "base" } },
  ]);
  const events = (await cluster.ask("GET", "/events/sandboxes?types=sandbox.lifecycle.created")).body as {
    sandboxId: string;
  }[];
  expect(events.map(({ sandboxId }) => sandboxId)).toEqual(expect.arrayContaining(ids));
});

describe("what fails is told in its place, and the others run:", () => {
  test("a node that starts every second one", async () => {
    let count = 0;
    cluster.agent.onStart = (_start, run) => {
      if (++count % 2 === 0) throw new AppError("sandbox_create_failed", "the disk could not be made");
      run();
    };
    const answer = await create(4);
    expect(answer.status).toBe(201);
    expect(results(answer).filter(({ sandbox }) => sandbox !== undefined)).toHaveLength(2);
    for (const { error } of results(answer).filter(({ error }) => error !== undefined)) {
      expect(error).toMatchObject({
        code: 500,
        error_code: "sandbox_create_failed",
        message: expect.stringContaining("the disk could not be made") as string,
      });
    }
    expect(await listed()).toHaveLength(2);
    await expect
      .poll(async () => (await entriesOf(answer)).filter(({ result }) => result === "failed"))
      .toHaveLength(2);
  });

  test("the project's limit, which is not exceeded by one", async () => {
    const { key, projectId } = await cluster.addProject("Swarm");
    await cluster.ask("PATCH", `/admin/projects/${projectId}`, { ...admin, body: { limits: { sandboxes: 6 } } });
    expect(results(await create(4, {}, { key })).every(({ sandbox }) => sandbox !== undefined)).toBe(true);
    const answers = results(await create(5, {}, { key }));
    expect(answers.filter(({ sandbox }) => sandbox !== undefined)).toHaveLength(2);
    expect(answers.filter(({ error }) => error?.code === 429)).toHaveLength(3);
    const running = (await cluster.ask("GET", "/v2/sandboxes", { key })).body as Sandbox[];
    expect(running).toHaveLength(6);
    for (const { sandboxID } of running) await cluster.ask("DELETE", `/sandboxes/${sandboxID}`, { key });
  });
});

test("many refusals of one request leave no more in the audit log than as many requests", async () => {
  const { key, projectId } = await cluster.addProject("Refused");
  await cluster.ask("PATCH", `/admin/projects/${projectId}`, { ...admin, body: { limits: { sandboxes: 30 } } });
  const full = await create(30, {}, { key });
  const refused = [await create(30, {}, { key }), await create(30, {}, { key })];
  for (const answer of refused) expect(results(answer).every(({ error }) => error?.code === 429)).toBe(true);
  await expect.poll(async () => (await entriesOf(refused[1] as Answer)).length).toBeGreaterThan(0);
  const written = (await Promise.all(refused.map(entriesOf))).flat().filter(({ result }) => result === "refused");
  expect(written.length).toBeLessThanOrEqual(MOST_REFUSALS);
  for (const { sandbox } of results(full)) await cluster.ask("DELETE", `/sandboxes/${sandbox?.sandboxID}`, { key });
});

test("a request that is wrong for each is refused as one, before a node is asked", async () => {
  const answers = [await create(31), await create(101), await create(0), await create(2, { templateID: "nosuch" })];
  expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 404]);
  expect(answers[0]?.text).toContain("at most the project's limit of 30 concurrent sandboxes");
  expect(cluster.agent.starts).toEqual([]);
});

test("the orchestrator ends the sandboxes of a caller who has left", async () => {
  const left = new AbortController();
  const begun = gateway();
  cluster.agent.onStart = async (_start, run) => {
    // What has not begun when its caller leaves is not sent to the node.
    if (cluster.agent.starts.length === 3) begun.resolve();
    await begun.promise;
    left.abort();
    await setTimeout(200);
    run();
  };
  await expect(
    fetch(`${cluster.url}/v2/sandboxes`, {
      method: "POST",
      headers: { "x-api-key": cluster.key, "content-type": "application/json" },
      body: JSON.stringify({ templateID: "base", count: 3 }),
      signal: left.signal,
    }),
  ).rejects.toThrow("aborted");
  await expect.poll(() => cluster.agent.starts.length).toBe(3);
  await expect.poll(listed).toEqual([]);
});
