/**
 * Template builds through the front door, with nodes that only pretend to build: what the nodes receive, how builds end, and
 * refusals.
 */

import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import { BUILDING, buildingOn, messageOf, type Requested } from "../../../support/cluster/building.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { storedOf } from "../../../support/fakes/fake-agent-builds.ts";
import { tarOf } from "../../../support/images/tar.ts";

/** Where several orchestrators may share the database, each counts the starts of all of them a moment later. */
const FOLLOWS = { timeout: 30_000 };

let cluster: Cluster;
beforeEach(async () => {
  cluster = await startCluster(BUILDING);
});
afterEach(() => cluster.stop());

const { built, create, held, request, start, status } = buildingOn(() => cluster);

describe("from request to sandbox", () => {
  test("a template is requested, started, building at the first status call, then ready and used", async () => {
    const building = held();
    const requested = await request({ name: "App:v1", tags: ["latest"], cpuCount: 4, memoryMB: 512 });
    expect(requested).toMatchObject({
      public: false,
      aliases: ["app"],
      names: ["test-project/app"],
      tags: ["v1", "latest"],
    });
    expect(await status(requested)).toMatchObject({ status: "waiting", logs: [], logEntries: [] });

    const started = await start(requested, {
      fromImage: "debian:12",
      steps: [
        { type: "ENV", args: ["GREETING", "hello", "LEVEL", "template"] },
        { type: "USER", args: ["root"] },
        { type: "WORKDIR", args: ["/app"] },
      ],
    });
    expect([started.status, started.headers.get("content-length"), started.text]).toEqual([202, "0", ""]);
    expect(await status(requested)).toMatchObject({ status: "building" });
    expect((await start(requested)).status).toBe(400);

    const build = await building;
    expect(build.body).toMatchObject({
      templateId: requested.templateID,
      resources: { cpuCount: 4, memoryMB: 512 },
      from: { is: "image", image: "debian:12" },
      force: false,
    });
    expect((await create("app:v1")).status).toBe(404);
    build.ready();
    await expect.poll(() => status(requested)).toMatchObject({ status: "ready" });

    expect((await create("app")).status).toBe(404);
    const answer = await create("app:latest", { envVars: { LEVEL: "own" } });
    expect(answer.status, answer.text).toBe(201);
    const [sandbox] = cluster.agent.starts;
    expect(sandbox?.body).toMatchObject({
      build: { templateId: requested.templateID, buildId: requested.buildID, image: `built:${requested.buildID}` },
      resources: { cpuCount: 4, memoryMB: 512 },
      envs: { GREETING: "hello", LEVEL: "own" },
      defaultUser: "root",
      defaultWorkdir: "/app",
    });
    expect(sandbox?.body.origin).toBeUndefined();
    const [listed] = (await cluster.ask("GET", "/templates")).body as { buildStatus: string; buildID: string }[];
    expect(listed).toMatchObject({ buildID: requested.buildID, buildStatus: "ready", cpuCount: 4, buildCount: 1 });
  });

  test("a template taken with its start command running starts as copies of it, on its node", async () => {
    await built("server", { startCmd: "serve", readyCmd: "curl localhost" });
    const asked = cluster.agent.buildsAsked[0];
    expect(asked).toMatchObject({ startCmd: "serve", readyCmd: "curl localhost" });
    expect((await create("server")).status).toBe(201);
    const [{ body } = { body: undefined }] = cluster.agent.starts;
    const [snapshotId] = [...cluster.agent.snapshots.keys()];
    expect(body?.origin).toEqual({ is: "snapshot", snapshotId, memory: true });
    // The snapshot is wanted for as long as the build exists.
    expect((await cluster.agent.beat()).deleteSnapshots).toEqual([]);
  });

  test("snapshots that a node keeps for a running build are not removed as unknown", async () => {
    await cluster.restart({ orphanGraceMs: 10 });
    const building = held();
    const requested = await request({ name: "server" });
    await start(requested, { startCmd: "serve" });
    const build = await building;
    const [own, stray] = [randomUUID(), randomUUID()];
    cluster.agent.snapshots.set(own, storedOf(build.buildId, own, true));
    cluster.agent.snapshots.set(stray, storedOf(randomUUID(), stray, true));
    await expect
      .poll(async () => {
        await cluster.agent.beat();
        return [...cluster.agent.snapshots.keys()];
      })
      .toEqual([own]);
  });

  test("a build on top of another one gets its settings, its disk and its node", async () => {
    const base = await built("base-app", { steps: [{ type: "ENV", args: ["A", "1"] }] });
    await built("child", { fromTemplate: "test-project/base-app", steps: [{ type: "WORKDIR", args: ["/child"] }] });
    await built("grandchild", { fromTemplate: "child:default", steps: [{ type: "ENV", args: ["B", "2"] }] });
    expect(cluster.agent.buildsAsked[1]?.from).toMatchObject({
      is: "build",
      build: { buildId: base.buildID, image: `built:${base.buildID}` },
      settings: { envs: { A: "1" }, user: "user", workdir: "/home/user" },
    });
    expect(cluster.agent.buildsAsked[2]?.from).toMatchObject({ settings: { envs: { A: "1" }, workdir: "/child" } });
    await create("grandchild");
    expect(cluster.agent.starts.at(-1)?.body).toMatchObject({ envs: { A: "1", B: "2" }, defaultWorkdir: "/child" });
    await built("from-base", { fromTemplate: "base" });
    await built("from-nothing");
    expect(cluster.agent.buildsAsked.at(-1)?.from).toEqual({ is: "image", image: "e2bdev/base" });
  });

  test("the tag moves when the new build is ready, the former one serves until then, and pools follow", async () => {
    const first = await built("app");
    for (let use = 0; use < 3; use++) await create("app");
    const pooled = async () => (await cluster.agent.beat()).pools.map(({ build }) => build.buildId);
    await expect.poll(pooled, FOLLOWS).toContain(first.buildID);
    const building = held();
    const second = await request({ name: "app" });
    expect(second.templateID).toBe(first.templateID);
    await start(second);
    const build = await building;
    await create("app");
    expect(cluster.agent.starts.at(-1)?.body.build.buildId).toBe(first.buildID);
    build.ready();
    await expect.poll(() => status(second)).toMatchObject({ status: "ready" });
    await create("app");
    expect(cluster.agent.starts.at(-1)?.body.build.buildId).toBe(second.buildID);
    await expect.poll(pooled, FOLLOWS).toContain(second.buildID);
    expect(await pooled()).not.toContain(first.buildID);
  });

  test("a pool entry of a template with memory belongs to its build, and its sandboxes still start as copies", async () => {
    const first = await built("server", { startCmd: "serve" });
    for (let use = 0; use < 3; use++) await create("server");
    const pooled = async () => (await cluster.agent.beat()).pools.filter(({ build }) => build.image !== "svc/base");
    const target = ({ templateID, buildID }: Requested) => ({
      build: { templateId: templateID, buildId: buildID, image: `built:${buildID}` },
      size: 3,
    });
    await expect.poll(pooled, FOLLOWS).toContainEqual(expect.objectContaining(target(first)));
    await create("server");
    const { build, resources, origin } = cluster.agent.starts.at(-1)?.body ?? {};
    expect(origin).toMatchObject({ is: "snapshot", memory: true });
    // These values are the pool's key.
    await expect.poll(pooled, FOLLOWS).toContainEqual({ build, resources, size: 4 });
    const second = await built("server", { startCmd: "serve" });
    const builds = async () => (await pooled()).map((one) => one.build.buildId);
    await expect.poll(builds, FOLLOWS).toContain(second.buildID);
    expect(await builds()).not.toContain(first.buildID);
  });

  test("a failed build names its step, and changes nothing", async () => {
    const first = await built("app");
    cluster.agent.onBuild = (build) => {
      build.log("[builder 1/1] RUN whoami", { step: "1" });
      build.fail("failed to run command 'whoami': command failed: unauthenticated", "1");
    };
    const second = await request({ name: "app" });
    await start(second, { steps: [{ type: "RUN", args: ["whoami", "root123"] }] });
    await expect
      .poll(() => status(second))
      .toMatchObject({
        status: "error",
        reason: { message: "failed to run command 'whoami': command failed: unauthenticated", step: "1" },
        logEntries: [{ message: "[builder 1/1] RUN whoami", level: "info", step: "1" }, { level: "error" }],
      });
    await create("app");
    expect(cluster.agent.starts.at(-1)?.body.build.buildId).toBe(first.buildID);
    await expect.poll(() => cluster.agent.buildsDeleted).toEqual([second.buildID]);
  });
});

test("a snapshot of a sandbox of a template keeps the template's variables", async () => {
  await built("app", { steps: [{ type: "ENV", args: ["A", "1"] }] });
  const { sandboxID } = (await create("app", { envVars: { OWN: "2" } })).body as { sandboxID: string };
  const { snapshotID } = (await cluster.ask("POST", `/sandboxes/${sandboxID}/snapshots`, { body: {} })).body as {
    snapshotID: string;
  };
  expect((await create(snapshotID, { envVars: { NEW: "3" } })).status).toBe(201);
  expect(cluster.agent.starts.at(-1)?.body.envs).toEqual({ A: "1", NEW: "3" });
});

describe("refused builds and templates", () => {
  test.each([
    [{ fromImage: "a", fromTemplate: "base" }, 400, "exclude each other"],
    [{ fromTemplate: "nosuch" }, 404, "template 'nosuch' not found"],
    [{ fromImage: "a b" }, 400, "is not an image name"],
    [{ fromTemplate: "base", fromImageRegistry: { type: "registry", username: "u", password: "p" } }, 400, "combined"],
    [{ fromImageRegistry: { type: "registry", username: "u", password: "p" } }, 400, "requires"],
    [{ fromImage: "a", fromImageRegistry: { type: "registry", username: "u" } }, 400, "fromImageRegistry"],
    [{ steps: [{ type: "NOPE", args: [] }] }, 400, "step 1: unknown type 'NOPE'"],
    [
      {
        steps: [
          { type: "RUN", args: ["a"] },
          { type: "COPY", args: ["a", "b"] },
        ],
      },
      400,
      "step 2 (COPY)",
    ],
    [{ steps: [{ type: "COPY", args: ["a", "b"], filesHash: "a".repeat(64) }] }, 400, "have not been uploaded"],
  ])("a build of %j is refused, and its owner may correct it", async (body, code, words) => {
    const requested = await request({ name: "app" });
    const answer = await start(requested, body);
    expect([answer.status, messageOf(answer)]).toEqual([code, expect.stringContaining(words)]);
    // The start was refused, so the build still waits, and its owner may correct the request.
    expect(await status(requested)).toMatchObject({ status: "waiting" });
  });

  test("a template beyond the limits or outside the project's namespace is refused", async () => {
    const ask = (body: object) => cluster.ask("POST", "/v3/templates", { body });
    expect(messageOf(await ask({}))).toBe("Name is required");
    for (const [beyond, words] of [
      [{ cpuCount: 33 }, "CPU count must be at most 32: the limit of this project; 33 was requested"],
      [{ memoryMB: 65_537 }, "Memory can't be higher than 65536 MiB: the limit of this project; 65537 was requested"],
      [{ minFreeDiskMb: 102_401 }, "Free disk can't be higher than 102400 MiB: the limit of this project"],
    ] as const) {
      for (const path of ["/v3/templates", "/v2/templates"]) {
        const answer = await cluster.ask("POST", path, { body: { name: "app", ...beyond } });
        expect(answer.body).toMatchObject({
          code: 403,
          error_code: "forbidden",
          message: expect.stringContaining(words) as string,
        });
      }
    }
    // What no project may have is wrong, not forbidden.
    for (const wrong of [{ cpuCount: 0 }, { memoryMB: 127 }, { minFreeDiskMb: -1 }]) {
      expect((await ask({ name: "app", ...wrong })).status).toBe(400);
    }
    // A project's own limit counts, also when the platform's is higher.
    await cluster.database.query("update projects set max_cpu = 2 where id = ?", cluster.teamId);
    await cluster.restart();
    expect((await ask({ name: "app", cpuCount: 3 })).body).toMatchObject({
      code: 403,
      message: expect.stringContaining("at most 2") as string,
    });
    expect((await ask({ name: "other/app" })).status).toBe(400);
    expect((await ask({ name: "app", teamID: "prj_somebodyelse" })).status).toBe(403);
    expect((await ask({ name: "app", teamID: cluster.projectId })).status).toBe(202);
    expect((await ask({ name: "app", teamID: cluster.projectId.toUpperCase() })).status).toBe(202);
    // A project may use the platform's own template name: the name becomes one of the project's.
    expect(await request({ name: "base" })).toMatchObject({ names: ["test-project/base"] });
  });

  test("another project gets 404 for the template and its builds", async () => {
    const other = await cluster.addProject("Other");
    const mine = await built("app");
    const ask = { key: other.key };
    const paths = ["", "/status", "/logs"].map((end) => `/templates/${mine.templateID}/builds/${mine.buildID}${end}`);
    for (const path of paths.slice(1)) expect((await cluster.ask("GET", path, ask)).status).toBe(404);
    expect((await start(mine, {}, ask)).status).toBe(404);
    expect((await cluster.ask("GET", `/templates/${mine.templateID}/files/${"a".repeat(64)}`, ask)).status).toBe(404);
    expect((await create("test-project/app", {}, ask)).status).toBe(404);
  });
});

describe("an agent of an earlier version", () => {
  const OLDER = "body field 'steps.0.command' is required";
  const EARLIER =
    "the agent of node n1 is of an earlier version, which takes octal modes of COPY only: write 755 in place of u+x, or let its " +
    "operator upgrade it";

  test.each([
    ["u+x", OLDER, EARLIER],
    ["755", OLDER, OLDER],
    ["u+x", "the image cannot be used: it has no shell", "the image cannot be used: it has no shell"],
  ])("that answers a COPY with the mode %s by '%s' fails its build by '%s'", async (mode, words, message) => {
    const requested = await request({ name: "app" });
    const filesHash = "a".repeat(64);
    const place = await cluster.ask("GET", `/templates/${requested.templateID}/files/${filesHash}`);
    const { url } = place.body as { url: string };
    expect((await fetch(url, { method: "PUT", body: new Uint8Array(tarOf({ a: "b" })) })).status).toBe(200);
    cluster.agent.onBuildCall = (call) => {
      if (call === "start") throw new AppError("bad_request", words);
    };
    const answer = await start(requested, { steps: [{ type: "COPY", args: ["a", "/b", "", mode], filesHash }] });
    expect(answer.status, answer.text).toBe(202);
    await expect.poll(() => status(requested)).toMatchObject({ status: "error", reason: { message } });
  });
});

describe("credentials of a registry", () => {
  const secret = "hunter2-registry-password";
  const ask = { fromImage: "a/b", fromImageRegistry: { type: "registry", username: "u", password: secret } };

  test("reach the node, and neither the database nor an answer", async () => {
    const build = await built("app", ask);
    expect(cluster.agent.buildsAsked[0]?.from).toMatchObject({ access: { username: "u", password: secret } });
    expect(await cluster.database.stored()).not.toContain(secret);
    expect(JSON.stringify(await status(build))).not.toContain(secret);
  });

  test("are gone after a restart, and a build that still waits for a node fails with that reason", async () => {
    const requested = await request({ name: "app" });
    cluster.agent.onBuildCall = (call) => {
      if (call === "start") throw new AppError("node_busy", "no room");
    };
    await start(requested, ask);
    await cluster.restart({}, () => {
      cluster.agent.onBuildCall = () => undefined;
    });
    await cluster.agent.beat();
    await expect
      .poll(() => status(requested))
      .toMatchObject({
        status: "error",
        reason: { message: expect.stringContaining("credentials") as string },
      });
  });
});
