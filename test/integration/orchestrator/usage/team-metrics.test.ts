/** The metrics of a project over time, and the metrics that programs collect of projects. */

import { afterEach, expect, test } from "vitest";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

let cluster: Cluster;

afterEach(() => cluster.stop());

interface Metric {
  readonly timestamp: string;
  readonly timestampUnix: number;
  readonly concurrentSandboxes: number;
  readonly sandboxStartRate: number;
  readonly memUsed: number;
}

const metrics = async (query = "") => {
  const answer = await cluster.ask("GET", `/teams/${cluster.teamId}/metrics${query}`);
  expect(answer.status, answer.text).toBe(200);
  return answer.body as Metric[];
};

test("a project sees its running sandboxes and starts, also after a restart, and no other project's", async () => {
  cluster = await startCluster();
  const other = await cluster.addProject("other");
  // The first sample: starts are counted from here.
  await expect.poll(async () => (await metrics()).length).toBeGreaterThan(0);
  for (let count = 0; count < 2; count++) {
    expect((await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } })).status).toBe(201);
  }
  // Each start of the orchestrator takes a sample at once.
  await cluster.restart();
  await expect.poll(async () => (await metrics()).at(-1)?.concurrentSandboxes).toBe(2);
  const all = await metrics();
  const starts = all.reduce((sum, { sandboxStartRate }) => sum + Math.round(sandboxStartRate * 5), 0);
  expect(starts).toBe(2);
  const last = all.at(-1);
  expect(Date.parse(last?.timestamp ?? "")).toBe((last?.timestampUnix ?? 0) * 1000);

  const max = (metric: string, query = "") =>
    cluster.ask("GET", `/teams/${cluster.projectId}/metrics/max?metric=${metric}${query}`);
  expect((await max("concurrent_sandboxes")).body).toMatchObject({ value: 2 });
  // A sample between the two starts shares them out.
  const rate = (await max("sandbox_start_rate")).body as { readonly value: number };
  expect([0.2, 0.4]).toContain(rate.value);
  expect((await max("concurrent_sandboxes", "&start=0&end=10")).body).toMatchObject({ value: 0, timestampUnix: 0 });
  expect(await metrics("?start=0&end=10")).toEqual([]);

  const theirs = await cluster.ask("GET", `/teams/${other.teamId}/metrics`, { key: other.key });
  expect((theirs.body as Metric[]).every(({ concurrentSandboxes }) => concurrentSandboxes === 0)).toBe(true);
  expect((await cluster.ask("GET", `/teams/${other.teamId}/metrics`)).status).toBe(403);
  expect((await cluster.ask("GET", `/teams/${cluster.teamId}/metrics?start=20&end=10`)).body).toMatchObject({
    message: "query field 'end' must not be before 'start'",
  });

  const text = (
    await cluster.ask("GET", "/metrics", { key: null, headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })
  ).text;
  expect(text).toContain(`svc_project_sandboxes{project="${cluster.projectId}"} 2`);
});
