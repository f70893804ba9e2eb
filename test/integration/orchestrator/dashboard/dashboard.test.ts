/**
 * The requests of E2B's open dashboard, as it sends them to its two base addresses: the API and `/dashboard` of the API. Each
 * answer has the fields that the dashboard reads, with their types.
 */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newUuid } from "../../../../shared/ids.ts";
import { buildingOn, type Requested } from "../../../support/cluster/building.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { until } from "../../../support/runner/until.ts";
import {
  assignment,
  buildState,
  every,
  type Is,
  listedBuild,
  nothing,
  oneOf,
  orNull,
  template,
  text,
  texts,
  time,
  uuid,
  whole,
  wrongIn,
  yesOrNo,
} from "./facts.ts";

let cluster: Cluster;
let other: { readonly key: string };
let ready: Requested;
let failed: Requested;
let waiting: Requested;
beforeAll(async () => {
  cluster = await startCluster({ config: { buildPollMs: 20 } });
  other = await cluster.addProject("Other");
  ready = await request({ name: "app" });
  await start(ready);
  await until(async () => (await status(ready)).status === "ready", { what: "the build", timeoutMs: 20_000 });
  const { onBuild } = cluster.agent;
  cluster.agent.onBuild = (build) => build.fail("exit status 1", "1");
  failed = await request({ name: "app" });
  await start(failed);
  await until(async () => (await status(failed)).status === "error", { what: "its failure", timeoutMs: 20_000 });
  cluster.agent.onBuild = onBuild;
  waiting = await request({ name: "second" });
});
afterAll(() => cluster.stop());

const { request, start, status } = buildingOn(() => cluster);

interface Call {
  readonly method?: string;
  /** At the base address of the API, or of the dashboard's own. */
  readonly at: string;
  readonly body?: unknown;
  readonly key?: string;
}

async function call({ method = "GET", at, body, key }: Call) {
  const answer = await cluster.ask(method, at, {
    ...(body === undefined ? {} : { body }),
    ...(key === undefined ? {} : { key }),
  });
  return { status: answer.status, body: answer.body as Record<string, unknown>, headers: answer.headers };
}

test.each<[string, () => Call, Readonly<Record<string, Is>>]>([
  ["its health", () => ({ at: "/dashboard/health" }), { message: text }],
  [
    "builds",
    () => ({ at: "/dashboard/builds?statuses=building,failed,success&limit=50" }),
    { data: every(listedBuild), nextCursor: nothing },
  ],
  [
    "statuses of builds",
    () => ({ at: `/dashboard/builds/statuses?build_ids=${ready.buildID},${waiting.buildID}` }),
    { buildStatuses: every({ id: uuid, ...buildState }) },
  ],
  ["a build", () => ({ at: `/dashboard/builds/${ready.buildID}` }), { names: texts, createdAt: time, ...buildState }],
  [
    "templates",
    () => ({ at: "/dashboard/templates?limit=50&sort=created_at_desc" }),
    {
      data: every({ ...template, cpuCount: whole, memoryMB: whole, createdBy: nothing, isDefault: yesOrNo }),
      nextCursor: nothing,
    },
  ],
  [
    "a template",
    () => ({ at: `/dashboard/templates/${ready.templateID}` }),
    { ...template, cpuCount: orNull(whole), memoryMB: orNull(whole) },
  ],
  [
    "default templates",
    () => ({ at: "/dashboard/templates/defaults" }),
    {
      templates: every({
        id: text,
        aliases: every({ alias: text, namespace: orNull(text) }),
        buildId: uuid,
        ramMb: whole,
        vcpu: whole,
        totalDiskSizeMb: orNull(whole),
        envdVersion: orNull(text),
        createdAt: time,
        public: yesOrNo,
        buildCount: whole,
        spawnCount: whole,
      }),
    },
  ],
  [
    "groups of tags",
    () => ({
      at: `/dashboard/templates/${ready.templateID}/tags/groups?assignmentLimit=6&tagsLimit=25&sort=latest_desc`,
    }),
    { tags: every({ tag: text, assignments: every(assignment), hasMore: yesOrNo }), nextCursor: nothing },
  ],
  ["the number of tags", () => ({ at: `/dashboard/templates/${ready.templateID}/tags/count` }), { total: whole }],
  [
    "whether a tag exists",
    () => ({ at: `/dashboard/templates/${ready.templateID}/tags/exists?tag=Default` }),
    { exists: yesOrNo, normalizedTag: oneOf("default") },
  ],
  [
    "the builds of a tag",
    () => ({ at: `/dashboard/templates/${ready.templateID}/tags/default/assignments?limit=50` }),
    { data: every(assignment), nextCursor: nothing },
  ],
  [
    "the state of a build without its log",
    () => ({ at: `/templates/${ready.templateID}/builds/${ready.buildID}/status?limit=0` }),
    { templateID: text, buildID: uuid, status: oneOf("ready"), logs: Array.isArray, logEntries: Array.isArray },
  ],
  [
    "the log of a build",
    () => ({
      at: `/templates/${ready.templateID}/builds/${ready.buildID}/logs?limit=100&direction=forward&level=debug`,
    }),
    { logs: Array.isArray },
  ],
])("the dashboard reads %s", async (_what, asked, fields) => {
  const answer = await call(asked());
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  expect(wrongIn(fields, answer.body), JSON.stringify(answer.body)).toEqual([]);
});

test.each([
  ["/v2/sandboxes?limit=1", 200],
  ["/v2/sandboxes?state=running,paused&limit=50", 200],
  ["/templates", 200],
  ["/v2/sandboxes/ihhjxvtxkalpqjfi/logs?limit=100&direction=backward&level=info&search=a", 404],
  ["/sandboxes/ihhjxvtxkalpqjfi/metrics?start=1700000000&end=1700000600", 404],
])("the dashboard's request %s of the API is understood", async (at, expected) => {
  expect((await call({ at })).status).toBe(expected);
});

describe("builds", () => {
  const idsOf = (body: Record<string, unknown>) => (body["data"] as { id: string }[]).map(({ id }) => id);

  test("are found by state, by their own id, and by the id or a name of their template", async () => {
    const found = async (query: string) => idsOf((await call({ at: `/dashboard/builds?${query}` })).body);
    expect(await found("")).toEqual([waiting.buildID, failed.buildID, ready.buildID]);
    expect(await found("statuses=success")).toEqual([ready.buildID]);
    expect(await found("statuses=failed,building")).toEqual([waiting.buildID, failed.buildID]);
    expect(await found(`build_id_or_template=${failed.buildID}`)).toEqual([failed.buildID]);
    expect(await found(`build_id_or_template=${ready.templateID}`)).toEqual([failed.buildID, ready.buildID]);
    expect(await found("build_id_or_template=second")).toEqual([waiting.buildID]);
    expect(await found("build_id_or_template=nothing")).toEqual([]);
    expect(await found("build_id_or_template=no%20name")).toEqual([]);
  });

  test("come in pages of which the last one has no cursor", async () => {
    const seen: string[] = [];
    let cursor: unknown = "";
    for (let page = 0; page < 3; page++) {
      const { body } = await call({ at: `/dashboard/builds?limit=1&cursor=${encodeURIComponent(String(cursor))}` });
      seen.push(...idsOf(body));
      cursor = body["nextCursor"];
    }
    expect(seen).toEqual([waiting.buildID, failed.buildID, ready.buildID]);
    expect(cursor).toBeNull();
  });

  test("say why they failed, and those of another project do not exist", async () => {
    const { body } = await call({ at: `/dashboard/builds/${failed.buildID}` });
    expect(body).toMatchObject({ status: "failed", statusMessage: "exit status 1", names: ["test-project/app"] });
    const { key } = other;
    expect((await call({ at: `/dashboard/builds/${failed.buildID}`, key })).status).toBe(404);
    expect((await call({ at: "/dashboard/builds", key })).body).toEqual({ data: [], nextCursor: null });
    expect((await call({ at: `/dashboard/builds?build_id_or_template=${ready.templateID}`, key })).body).toEqual({
      data: [],
      nextCursor: null,
    });
    expect((await call({ at: `/dashboard/builds/statuses?build_ids=${ready.buildID}`, key })).body).toEqual({
      buildStatuses: [],
    });
  });
});

describe("templates", () => {
  const idsOf = (body: Record<string, unknown>) =>
    (body["data"] as { templateID: string }[]).map(({ templateID }) => templateID);

  test("are searched, sorted and filtered, and one without a build that is ready has none", async () => {
    const found = async (query: string) => idsOf((await call({ at: `/dashboard/templates?${query}` })).body);
    expect(await found("search=PROJECT/sec")).toEqual([waiting.templateID]);
    expect(await found("public=false&sort=created_at_asc")).toEqual([ready.templateID, waiting.templateID]);
    expect(await found("public=false&sort=created_at_desc")).toEqual([waiting.templateID, ready.templateID]);
    expect(await found("public=true")).not.toContain(ready.templateID);
    const { body } = await call({ at: `/dashboard/templates/${waiting.templateID}` });
    expect(body).toMatchObject({
      buildID: "00000000-0000-0000-0000-000000000000",
      cpuCount: null,
      memoryMB: null,
      diskSizeMB: null,
      buildCount: 1,
    });
    expect((await call({ at: `/dashboard/templates/${ready.templateID}`, key: other.key })).status).toBe(404);
  });

  test("come in pages, and a cursor of one order is refused in another", async () => {
    const first = await call({ at: "/dashboard/templates?public=false&limit=1&sort=created_at_asc" });
    expect(idsOf(first.body)).toEqual([ready.templateID]);
    const cursor = encodeURIComponent(String(first.body["nextCursor"]));
    const next = await call({ at: `/dashboard/templates?public=false&limit=1&sort=created_at_asc&cursor=${cursor}` });
    expect(idsOf(next.body)).toEqual([waiting.templateID]);
    expect(next.body["nextCursor"]).toBeNull();
    expect((await call({ at: `/dashboard/templates?cursor=${cursor}` })).status).toBe(400);
  });
});

test("a tag is put on a build that the dashboard names by its id, is shown, and is taken off", async () => {
  const groups = `/dashboard/templates/${ready.templateID}/tags/groups`;
  const target = `test-project/app:${ready.buildID}`;
  const assign = (of: string) => call({ method: "POST", at: "/templates/tags", body: { target: of, tags: ["v1"] } });
  expect(await assign(target)).toMatchObject({ status: 201, body: { tags: ["v1"], buildID: ready.buildID } });
  expect((await assign(`app:${failed.buildID}`)).status).toBe(404);
  expect((await assign(`second:${ready.buildID}`)).status).toBe(404);
  const tagsOf = async (query: string) =>
    ((await call({ at: `${groups}?${query}` })).body["tags"] as { tag: string }[]).map(({ tag }) => tag);
  expect(await tagsOf("sort=name_desc")).toEqual(["v1", "default"]);
  expect(await tagsOf("sort=latest_desc")).toEqual(["v1", "default"]);
  expect(await tagsOf("sort=latest_asc")).toEqual(["default", "v1"]);
  expect(await tagsOf("search=v")).toEqual(["v1"]);
  const page = await call({ at: `${groups}?sort=name_asc&tagsLimit=1` });
  const cursor = encodeURIComponent(String(page.body["nextCursor"]));
  expect(await tagsOf(`sort=name_asc&tagsLimit=1&tagsCursor=${cursor}`)).toEqual(["v1"]);
  const removed = await call({ method: "DELETE", at: "/templates/tags", body: { name: "app", tags: ["v1"] } });
  expect(removed.status).toBe(204);
  expect((await call({ at: `/dashboard/templates/${ready.templateID}/tags/exists?tag=v1` })).body).toEqual({
    exists: false,
    normalizedTag: "v1",
  });
});

test.each([
  ["/dashboard/builds?cursor=nonsense", 400],
  ["/dashboard/builds?statuses=ready", 400],
  ["/dashboard/builds?limit=101", 400],
  ["/dashboard/builds/statuses", 400],
  ["/dashboard/builds/statuses?build_ids=one", 400],
  ["/dashboard/builds/00000000-0000-4000-8000-000000000000", 404],
  ["/dashboard/templates?sort=name", 400],
  ["/dashboard/templates/nothing", 404],
  ["/dashboard/templates/nothing/tags/count", 404],
  ["/dashboard/templates/base/tags/exists?tag=a%20b", 400],
])("the request %s is refused with %i", async (at, expected) => {
  expect((await call({ at })).status).toBe(expected);
});

test("a request for the states of more than a hundred builds is refused", async () => {
  const ids = Array.from({ length: 101 }, () => newUuid());
  const answer = await call({ at: `/dashboard/builds/statuses?build_ids=${ids.join(",")}` });
  expect(answer).toMatchObject({ status: 400, body: { message: expect.stringContaining("at most 100 builds") } });
});

test("no route of the dashboard but its health answers without a key", async () => {
  for (const at of ["/dashboard/builds", "/dashboard/templates", "/dashboard/templates/defaults"])
    expect((await cluster.ask("GET", at, { key: null })).status).toBe(401);
  expect((await cluster.ask("GET", "/dashboard/health", { key: null })).status).toBe(200);
});
