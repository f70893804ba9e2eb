/** Finished templates: names, tags, lists, visibility, deletion, and the removal of what nothing needs any more. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { buildingOn, messageOf } from "../../../support/cluster/building.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

let cluster: Cluster;
let other: { readonly key: string; readonly slug: string; readonly projectId: string };
beforeEach(async () => {
  cluster = await startCluster({ config: { buildPollMs: 20 } });
  other = await cluster.addProject("Other");
});
afterEach(() => cluster.stop());

const { request, start, built, create, status } = buildingOn(() => cluster);
const name = (text: string) => encodeURIComponent(text);

async function tagsOf(template: string): Promise<string[]> {
  const { body } = await cluster.ask("GET", `/templates/${name(template)}/tags`);
  return (body as { tag: string; buildID: string }[]).map(({ tag, buildID }) => `${tag}=${buildID}`).sort();
}

describe("tags", () => {
  const assign = (target: string, tags: string[], key?: string) =>
    cluster.ask("POST", "/templates/tags", { body: { target, tags }, ...(key === undefined ? {} : { key }) });
  const remove = (template: string, tags: string[], key?: string) =>
    cluster.ask("DELETE", "/templates/tags", { body: { name: template, tags }, ...(key === undefined ? {} : { key }) });

  test("are put on the build that the target means, moved, listed and taken off", async () => {
    const first = await built("app");
    expect((await assign("app", ["production", "Latest"])).body).toEqual({
      tags: ["production", "latest"],
      buildID: first.buildID,
    });
    const second = await built("app");
    expect((await assign("test-project/app:default", ["latest"])).body).toMatchObject({ buildID: second.buildID });
    expect(await tagsOf("app")).toEqual(
      [`default=${second.buildID}`, `latest=${second.buildID}`, `production=${first.buildID}`].sort(),
    );
    await create("app:production");
    expect(cluster.agent.starts.at(-1)?.body.build.buildId).toBe(first.buildID);
    expect((await assign("app:production", ["default"])).status).toBe(201);
    await create("app");
    expect(cluster.agent.starts.at(-1)?.body.build.buildId).toBe(first.buildID);
    expect((await remove("app", ["production", "latest"])).status).toBe(204);
    expect(await tagsOf("app")).toEqual([`default=${first.buildID}`]);
    expect((await create("app:production")).status).toBe(404);
  });

  test("are refused with the statuses of the contract", async () => {
    const mine = await built("app");
    expect((await assign("app", [":invalid-tag"])).status).toBe(400);
    expect((await assign("app:", ["a"])).status).toBe(400);
    expect((await assign("app", ["name:"])).status).toBe(400);
    expect((await assign("app", [])).status).toBe(400);
    expect((await assign("nosuch", ["a"])).status).toBe(404);
    expect((await assign("app:nosuch", ["a"])).status).toBe(404);
    expect((await assign("other/app", ["a"])).status).toBe(400);
    expect((await assign("base", ["a"])).status).toBe(404);
    expect((await assign(mine.templateID, ["a"], other.key)).status).toBe(404);
    expect((await remove("app", ["default"])).status).toBe(400);
    expect((await remove("app", ["nosuch"])).status).toBe(404);
    expect((await remove("nosuch", ["a"])).status).toBe(404);
    expect((await remove(mine.templateID, ["a"], other.key)).status).toBe(404);
    expect((await assign("app", ["a", "b"])).status).toBe(201);
    // The request removes all of these tags or none.
    expect((await remove("app", ["a", "nosuch"])).status).toBe(404);
    expect((await tagsOf("app")).length).toBe(3);
    expect((await cluster.ask("GET", `/templates/${mine.templateID}/tags`, { key: other.key })).status).toBe(404);
    expect((await cluster.ask("GET", "/templates/nosuch/tags")).status).toBe(404);
  });
});

describe("names", () => {
  const alias = async (text: string, key?: string) =>
    (await cluster.ask("GET", `/templates/aliases/${name(text)}`, key === undefined ? {} : { key })).status;

  test("exist for their project, are taken for others, and otherwise are not there", async () => {
    await built("app");
    expect([await alias("app"), await alias("test-project/app"), await alias("base"), await alias("nosuch")]).toEqual([
      200, 200, 200, 404,
    ]);
    expect([await alias("app", other.key), await alias("test-project/app", other.key)]).toEqual([404, 403]);
    // The same name in another project is another template.
    const theirs = await built("app", {}, { key: other.key });
    expect(theirs.names).toEqual(["other/app"]);
    expect(await alias("app", other.key)).toBe(200);
  });

  test.each(["No Such Name!", "a/b/c", "app:", ":app", "app:v1:v2", "ünï", " ", "x".repeat(200), "a\u0000b"])(
    "%j, which no template can be called, does not exist either",
    async (text) => {
      const answer = await cluster.ask("GET", `/templates/aliases/${name(text)}`);
      expect(answer.body, answer.text).toMatchObject({
        code: 404,
        error_code: "template_not_found",
        message: expect.stringContaining(`template '${text}' not found`) as string,
      });
    },
  );

  test("of snapshots cannot be taken by templates", async () => {
    const { sandboxID } = (await create("base")).body as { sandboxID: string };
    await cluster.ask("POST", `/sandboxes/${sandboxID}/snapshots`, { body: { name: "snap" } });
    const answer = await cluster.ask("POST", "/v3/templates", { body: { name: "snap" } });
    expect([answer.status, messageOf(answer)]).toEqual([400, expect.stringContaining("name of a snapshot")]);
  });
});

test("a private template is used by its project only; a public one by every project, and changed by its own only", async () => {
  const mine = await built("app");
  const use = () => create("test-project/app", {}, { key: other.key });
  const patch = (path: string, isPublic: boolean, key?: string) =>
    cluster.ask("PATCH", path, { body: { public: isPublic }, ...(key === undefined ? {} : { key }) });
  expect((await use()).status).toBe(404);
  const published = await patch(`/v2/templates/${mine.templateID}`, true);
  expect([published.status, published.body]).toEqual([200, { names: ["test-project/app"] }]);
  expect((await cluster.ask("GET", "/v2/templates")).body).toMatchObject([{ public: true }, {}]);
  expect((await use()).status).toBe(201);
  await built("theirs", { fromTemplate: "test-project/app" }, { key: other.key });
  expect((await patch("/v2/templates/test-project%2Fapp", false, other.key)).status).toBe(403);
  expect((await patch("/v2/templates/base", false)).status).toBe(400);
  expect((await patch("/v2/templates/nosuch", false)).status).toBe(404);
  expect((await cluster.ask("DELETE", `/templates/${mine.templateID}`, { key: other.key })).status).toBe(404);
  const old = await patch("/templates/app", false);
  expect([old.status, old.text, old.headers.get("content-length")]).toEqual([200, "", "0"]);
  expect((await use()).status).toBe(404);
});

test("the owner of a template says how many of its default build nodes keep warm, until the demand decides again", async () => {
  const first = await built("app");
  const set = (warmPool: unknown) => cluster.ask("PATCH", "/v2/templates/app", { body: { warmPool } });
  const shown = async () => ((await cluster.ask("GET", "/templates/app")).body as { warmPool?: number }).warmPool;
  const kept = () => cluster.agent.pools().map(({ build, size }) => `${build.buildId}=${size}`);
  for (const wrong of [-1, 1.5, 2_000, "3"]) expect((await set(wrong)).status).toBe(400);
  expect(await shown()).toBeUndefined();
  expect((await set(2)).status).toBe(200);
  expect(await shown()).toBe(2);
  await expect.poll(kept, { timeout: 30_000 }).toContain(`${first.buildID}=2`);
  const second = await built("app");
  await expect.poll(kept, { timeout: 30_000 }).toContain(`${second.buildID}=2`);
  expect(kept()).not.toContain(`${first.buildID}=2`);
  expect((await set(null)).status).toBe(200);
  expect(await shown()).toBeUndefined();
  await expect.poll(kept, { timeout: 30_000 }).not.toContain(`${second.buildID}=2`);
  const foreign = await cluster.ask("PATCH", "/v2/templates/test-project%2Fapp", {
    key: other.key,
    body: { warmPool: 1 },
  });
  expect(foreign.status).toBe(404);
});

test("the next page is found also when the template at the end of the page before is deleted", async () => {
  for (const each of ["one", "two", "three"]) await built(each);
  const aliases = (answer: { readonly body: unknown }) =>
    (answer.body as { aliases: string[] }[]).map(({ aliases: [alias = ""] }) => alias);
  const first = await cluster.ask("GET", "/v2/templates?limit=1");
  expect(aliases(first)).toEqual(["three"]);
  expect((await cluster.ask("DELETE", "/templates/three")).status).toBe(204);
  const second = await cluster.ask("GET", `/v2/templates?limit=1&nextToken=${first.headers.get("x-next-token") ?? ""}`);
  expect([second.status, aliases(second)], second.text).toEqual([200, ["two"]]);
});

test("the next page of builds is found also when the build at the end of the page before is deleted", async () => {
  const oldest = await built("app");
  await cluster.ask("POST", "/templates/tags", { body: { target: "app", tags: ["keep"] } });
  const [unneeded, newest] = [await built("app"), await built("app")];
  const page = (query: string) => cluster.ask("GET", `/templates/app?${query}`);
  const ids = (answer: { readonly body: unknown }) =>
    (answer.body as { builds: { buildID: string }[] }).builds.map(({ buildID }) => buildID);
  const first = await page("limit=2");
  expect(ids(first)).toEqual([newest.buildID, unneeded.buildID]);
  const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
  await cluster.ask("POST", "/admin/builds/collect", { ...admin, body: { dryRun: false, keepHours: 0 } });
  expect(ids(await page("limit=9"))).toEqual([newest.buildID, oldest.buildID]);
  const second = await page(`limit=2&nextToken=${first.headers.get("x-next-token") ?? ""}`);
  expect([second.status, ids(second), second.headers.get("x-next-token")]).toEqual([200, [oldest.buildID], null]);
});

test("templates are listed with the newest first, a page at a time, with the state of the last build", async () => {
  await built("one");
  await request({ name: "two" });
  await built("three");
  cluster.agent.onBuild = (build) => build.fail("no", "base");
  const failing = await request({ name: "four" });
  await start(failing);
  await expect.poll(() => status(failing)).toMatchObject({ status: "error", reason: { step: "base" } });
  const list = (await cluster.ask("GET", "/templates")).body as { aliases: string[]; buildStatus: string }[];
  const shown = list.map(({ aliases: [alias = ""], buildStatus }) => `${alias} ${buildStatus}`);
  expect(shown.sort()).toEqual(["base ready", "four error", "one ready", "three ready", "two waiting"]);
  const seen: string[] = [];
  for (let token: string | null = ""; token !== null; ) {
    const page = await cluster.ask("GET", `/v2/templates?limit=2&nextToken=${token}`);
    seen.push(...(page.body as { aliases: string[] }[]).map(({ aliases: [alias = ""] }) => alias));
    token = page.headers.get("x-next-token");
  }
  expect([...seen].sort()).toEqual(["base", "four", "one", "three", "two"]);
  expect((await cluster.ask("GET", `/templates?teamID=${cluster.projectId}`)).status).toBe(200);
  expect((await cluster.ask("GET", `/templates?teamID=${cluster.projectId.toUpperCase()}`)).status).toBe(200);
  expect((await cluster.ask("GET", `/v2/templates?teamID=${cluster.teamId.toUpperCase()}`)).status).toBe(200);
  expect((await cluster.ask("GET", `/templates?teamID=${other.projectId}`)).status).toBe(403);
  expect((await cluster.ask("GET", "/templates/one")).body).toMatchObject({
    names: ["test-project/one"],
    builds: [{ status: "ready", finishedAt: expect.any(String) as string }],
  });
});

describe("deletion", () => {
  test("of a template waits for its sandboxes and removes everything, on its node as well", async () => {
    const app = await built("app", { startCmd: "serve" });
    const { sandboxID } = (await create("app")).body as { sandboxID: string };
    const refused = await cluster.ask("DELETE", "/templates/app");
    expect([refused.status, messageOf(refused)]).toEqual([400, expect.stringContaining("in use")]);
    await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
    expect((await cluster.ask("DELETE", "/templates/app")).status).toBe(204);
    expect((await cluster.ask("DELETE", "/templates/app")).status).toBe(404);
    expect((await cluster.ask("GET", "/templates/aliases/app")).status).toBe(404);
    expect((await create("app")).status).toBe(404);
    await expect.poll(() => cluster.agent.buildsDeleted).toEqual([app.buildID]);
    expect(cluster.agent.snapshots.size).toBe(0);
  });

  test("in the middle of a build cancels it", async () => {
    cluster.agent.onBuild = () => undefined;
    const app = await request({ name: "app" });
    await start(app);
    await expect.poll(() => cluster.agent.builds.size).toBe(1);
    expect((await cluster.ask("DELETE", "/templates/app")).status).toBe(204);
    await expect.poll(() => cluster.agent.buildsDeleted).toEqual([app.buildID]);
    expect(await status(app)).toMatchObject({ code: 404 });
  });

  test("with a tag takes that tag alone", async () => {
    await built("app:v1");
    await built("app");
    expect((await cluster.ask("DELETE", `/templates/${name("app:v1")}`)).status).toBe(204);
    expect((await cluster.ask("DELETE", `/templates/${name("app:v1")}`)).status).toBe(404);
    expect((await create("app")).status).toBe(201);
  });

  test("reaches a node that was away once it is back", async () => {
    const app = await built("app");
    let away = true;
    cluster.agent.onBuildCall = (call) => {
      if (call === "delete" && away) throw new Error("away");
    };
    await cluster.ask("DELETE", "/templates/app");
    await cluster.restart({ buildPollMs: 20 });
    away = false;
    await cluster.agent.beat();
    await expect.poll(() => cluster.agent.buildsDeleted).toEqual([app.buildID]);
  });
});

test("a promoted template has a name that every project can use, and is in their lists", async () => {
  const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
  const promote = (body: object) => cluster.ask("POST", "/admin/templates/promote", { ...admin, body });
  const listed = async () =>
    ((await cluster.ask("GET", "/templates", { key: other.key })).body as { templateID: string }[]).map(
      ({ templateID }) => templateID,
    );
  const mine = await built("tools");
  const ask = { templateID: mine.templateID, name: "tools-v1" };
  expect((await create("tools-v1", {}, { key: other.key })).status).toBe(404);
  expect((await cluster.ask("POST", "/admin/templates/promote", { body: ask })).status).toBe(401);
  expect((await promote({ ...ask, templateID: "nosuch" })).status).toBe(404);
  expect((await promote({ ...ask, name: "base" })).status).toBe(400);
  expect(await listed()).not.toContain(mine.templateID);

  expect([(await promote(ask)).status, (await promote(ask)).status]).toEqual([204, 204]);
  expect(await listed()).toContain(mine.templateID);
  expect((await create("tools-v1", {}, { key: other.key })).status).toBe(201);
  expect(cluster.agent.starts.at(-1)?.body.build.buildId).toBe(mine.buildID);
  expect((await cluster.ask("DELETE", `/templates/${mine.templateID}`, { key: other.key })).status).toBe(404);

  // The name moves to another template.
  const next = await built("other-tools");
  expect((await promote({ ...ask, templateID: next.templateID })).status).toBe(204);
  await create("tools-v1", {}, { key: other.key });
  expect(cluster.agent.starts.at(-1)?.body.build.buildId).toBe(next.buildID);
});

test("builds that nothing needs are found by a dry run, and removed without one", async () => {
  const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
  const collect = async (dryRun: boolean) => {
    const body = { dryRun, keepHours: 0 };
    const answer = await cluster.ask("POST", "/admin/builds/collect", { ...admin, body });
    return (answer.body as { builds: { buildID: string }[] }).builds.map(({ buildID }) => buildID);
  };
  const unused = await built("app");
  const used = await built("app");
  const { sandboxID } = (await create("app")).body as { sandboxID: string };
  const tagged = await built("app");
  await cluster.ask("POST", "/templates/tags", { body: { target: "app", tags: ["keep"] } });
  const newest = await built("app");
  const parent = await built("parent");
  await built("parent");
  cluster.agent.onBuild = () => undefined;
  const waiting = await request({ name: "never-started" });
  expect((await collect(true)).sort()).toEqual([unused.buildID, parent.buildID, waiting.buildID].sort());
  expect((await collect(false)).sort()).toEqual([unused.buildID, parent.buildID, waiting.buildID].sort());
  expect(await collect(true)).toEqual([]);
  await expect.poll(() => [...cluster.agent.buildsDeleted].sort()).toEqual([unused.buildID, parent.buildID].sort());
  expect((await cluster.ask("GET", "/templates/aliases/never-started")).status).toBe(404);
  const { builds } = (await cluster.ask("GET", "/templates/app")).body as { builds: { buildID: string }[] };
  expect(builds.map(({ buildID }) => buildID)).toEqual([newest.buildID, tagged.buildID, used.buildID]);
  await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
  expect(await collect(true)).toEqual([used.buildID]);
});

test("the build routes of the first API version answer 410", async () => {
  for (const path of ["/templates", "/templates/app", "/templates/app/builds/b"]) {
    expect((await cluster.ask("POST", path)).status).toBe(410);
  }
});
