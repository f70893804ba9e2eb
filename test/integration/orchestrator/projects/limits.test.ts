/** Limits of projects, reached by ten clients at once, and the deletion of a project with everything in it. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { ADMIN_TOKEN, type Answer, type Cluster } from "../../../support/cluster/cluster.ts";
import { forkingCluster } from "../lifecycle/forking.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await forkingCluster();
  await cluster.restart({ supportContact: "ops@example.com", buildPollMs: 20 });
  await cluster.agent.beat();
});
afterAll(() => cluster.stop());

const ADMIN = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
const admin = (method: string, path: string, body?: unknown): Promise<Answer> =>
  cluster.ask(method, `/admin/projects${path}`, body === undefined ? ADMIN : { ...ADMIN, body });

async function limited(name: string, limits: object) {
  const project = await cluster.addProject(name);
  const changed = await admin("PATCH", `/${project.projectId}`, { limits });
  expect(changed.status, changed.text).toBe(200);
  return project;
}

const ten = <T>(work: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: 10 }, (_, index) => work(index)));
const create = (key: string, body: object = {}) =>
  cluster.ask("POST", "/v2/sandboxes", { key, body: { templateID: "base", ...body } });

/** How many of the answers succeeded, and the others' status, code and words. */
function outcome(answers: readonly Answer[]) {
  const refused = answers.filter(({ status }) => status >= 300);
  const words = new Set(refused.map(({ status, body }) => `${status} ${(body as { message: string }).message}`));
  return { passed: answers.length - refused.length, words: [...words].join("\n"), refused };
}

async function usage(key: string, projectId: string) {
  const { status, body, text } = await cluster.ask("GET", `/projects/${projectId}/limits`, { key });
  expect(status, text).toBe(200);
  return body as {
    limits: Record<string, { limit: number | null; used: number | null; own: boolean }>;
    contact: string;
  };
}

test.each([
  [
    "sandboxes",
    { sandboxes: 3 },
    3,
    /^429 you have reached .* sandboxes \(3\): the project has 3; .* ask ops@example\.com/,
  ],
  [
    "totalCPU",
    { totalCPU: 5 },
    2,
    /^429 you have reached the maximum of 5 CPU cores .* uses 4 .* ask ops@example\.com/,
  ],
  ["totalMemoryMB", { totalMemoryMB: 4_095 }, 3, /^429 .* 4095 MiB of memory .* uses 3072 .* ask ops@example\.com/],
  [
    "startsPerMinute",
    { startsPerMinute: 4 },
    4,
    /^429 .* 4 sandbox starts a minute: .* had 4; .* ask ops@example\.com/,
  ],
] as const)("ten creates at once do not exceed the limit %s", async (name, limits, most, words) => {
  const { key, projectId } = await limited(`create ${name}`, limits);
  const done = outcome(await ten(() => create(key)));
  expect(done.passed).toBe(most);
  expect(done.words).toMatch(words);
  const shown = await usage(key, projectId);
  expect(shown.contact).toBe("ops@example.com");
  const used = { sandboxes: most, startsPerMinute: most, totalCPU: 2 * most, totalMemoryMB: 1_024 * most }[name];
  expect(shown.limits[name]).toEqual({ limit: Object.values(limits)[0], used, own: true });
  const retry = done.refused[0]?.headers.get("retry-after");
  if (name === "startsPerMinute") expect(Number(retry)).toBeGreaterThan(0);
  else expect(retry).toBeNull();
});

test("ten resumes at once do not exceed the limit of running sandboxes", async () => {
  const { key, projectId } = await limited("resume", {});
  const made = await ten(() => create(key));
  const ids = made.map(({ body }) => (body as { sandboxID: string }).sandboxID);
  for (const id of ids) expect((await cluster.ask("POST", `/sandboxes/${id}/pause`, { key })).status).toBe(204);
  await admin("PATCH", `/${projectId}`, { limits: { sandboxes: 4 } });
  const answers = await ten((index) =>
    cluster.ask("POST", `/v2/sandboxes/${ids[index] ?? ""}/connect`, { key, body: {} }),
  );
  const done = outcome(answers);
  expect(done.passed).toBe(4);
  expect(done.words).toMatch(/^429 .* sandboxes \(4\): the project has 4; .* ask ops@example\.com/);
});

test("ten snapshots at once do not exceed their limit", async () => {
  const { key, projectId } = await limited("snapshots", { snapshots: 3 });
  const made = await ten(() => create(key));
  const ids = made.map(({ body }) => (body as { sandboxID: string }).sandboxID);
  const snapshot = (id = "") => cluster.ask("POST", `/sandboxes/${id}/snapshots`, { key, body: {} });
  const done = outcome(await ten((index) => snapshot(ids[index])));
  expect(done.passed).toBe(3);
  expect(done.words).toBe(
    "403 the project may keep 3 snapshots and has 3: delete snapshots, or ask ops@example.com for more",
  );
  expect((await usage(key, projectId)).limits["snapshots"]).toEqual({ limit: 3, used: 3, own: true });
  // A fork is no snapshot.
  const forked = await cluster.ask("POST", `/sandboxes/${ids[0] ?? ""}/fork`, { key, body: { count: 1 } });
  expect([forked.status, forked.text]).toEqual([201, expect.stringContaining("sandboxID")]);
});

test("one sandbox names no more destinations than the limit, at create and later", async () => {
  const { key } = await limited("egress", { egressRules: 3 });
  const ranges = (count: number) => ({
    denyOut: Array.from({ length: count }, (_, index) => `198.51.100.${index}/32`),
  });
  const refused = await create(key, { network: ranges(4) });
  expect([refused.status, refused.text]).toEqual([
    403,
    expect.stringMatching(/name 4 destinations, .* may name 3: .* ask ops@/),
  ]);
  const { body } = await create(key, { network: ranges(3) });
  const { sandboxID } = body as { sandboxID: string };
  const update = (count: number) => cluster.ask("PUT", `/sandboxes/${sandboxID}/network`, { key, body: ranges(count) });
  expect((await update(4)).status).toBe(403);
  expect((await update(2)).status).toBe(204);
});

test("a limit that an operator changes holds for the next call, and another project's cannot be read", async () => {
  const { key, projectId } = await limited("changed", { sandboxes: 1 });
  expect(outcome(await ten(() => create(key))).passed).toBe(1);
  await admin("PATCH", `/${projectId}`, { limits: { sandboxes: 2 } });
  expect(outcome(await ten(() => create(key))).passed).toBe(1);
  await admin("PATCH", `/${projectId}`, { limits: { sandboxes: null } });
  expect(outcome(await ten(() => create(key))).passed).toBe(10);
  const { limits } = await usage(key, projectId);
  expect(limits["sandboxes"]).toEqual({ limit: 20, used: 12, own: false });
  expect(limits["volumes"]).toEqual({ limit: 20, used: 0, own: false });
  expect(limits["sandboxHours"]).toEqual({ limit: 24, used: null, own: false });
  expect((await admin("GET", `/${projectId}/limits`)).body).toMatchObject({ limits });
  expect((await cluster.ask("GET", `/projects/${cluster.projectId}/limits`, { key })).status).toBe(404);
});

test("a deletion ends and removes everything of a project, also over a restart, and its progress can be read", async () => {
  const { key, teamId, projectId, slug } = await cluster.addProject("doomed");
  const ids: string[] = [];
  for (let made = 0; made < 3; made++) ids.push(((await create(key)).body as { sandboxID: string }).sandboxID);
  const [running = "", paused = "", ended = ""] = ids;
  expect((await cluster.ask("POST", `/sandboxes/${running}/snapshots`, { key, body: { name: "snap" } })).status).toBe(
    201,
  );
  expect((await cluster.ask("POST", `/sandboxes/${paused}/pause`, { key })).status).toBe(204);
  expect((await cluster.ask("DELETE", `/sandboxes/${ended}`, { key })).status).toBe(204);
  expect((await cluster.ask("POST", "/v3/templates", { key, body: { name: "app" } })).status).toBe(202);
  const begun = await admin("DELETE", `/${projectId}`);
  expect([begun.status, begun.body]).toEqual([202, expect.objectContaining({ teamID: teamId, projectID: projectId })]);
  expect((await cluster.ask("GET", "/v2/sandboxes", { key })).status).toBe(401);
  const asOperator = await cluster.ask("GET", "/v2/sandboxes", {
    ...ADMIN,
    headers: { ...ADMIN.headers, "x-team-id": teamId },
  });
  expect(asOperator.status).toBe(403);
  await cluster.restart();
  await cluster.agent.beat();
  const progress = async () => (await admin("GET", `/${teamId}/deletion`)).body;
  await expect.poll(progress).toMatchObject({
    status: "deleted",
    remaining: { sandboxes: 0, snapshots: 0, templates: 0, builds: 0, history: 0 },
    finishedAt: expect.any(String) as string,
  });
  for (const table of ["sandboxes", "events", "templates", "api_keys"]) {
    expect(await cluster.database.query(`select * from ${table} where project_id = ?`, teamId), table).toEqual([]);
  }
  expect((await admin("GET", `/${teamId}`)).status).toBe(404);
  // A repeated request is harmless, and an unknown project is not found.
  expect((await admin("DELETE", `/${projectId}`)).body).toMatchObject({ status: "deleted" });
  expect((await admin("DELETE", "/prj_none")).status).toBe(404);
  expect(await cluster.addProject("doomed")).toMatchObject({ slug });
});
