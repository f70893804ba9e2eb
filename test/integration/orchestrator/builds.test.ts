/** Template builds through the front door, with nodes that only say that they build. */

import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { AppError } from "../../../shared/http/errors.ts";
import { buildingOn, messageOf, type Requested } from "../../support/fakes/building.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../support/fakes/cluster.ts";
import { type FakeBuild, storedOf } from "../../support/fakes/fake-agent-builds.ts";

let cluster: Cluster;
beforeEach(async () => {
  cluster = await startCluster({ config: { buildPollMs: 20, nodeLostMs: 60_000 } });
});
afterEach(() => cluster.stop());

const { request, start, status, built, create } = buildingOn(() => cluster);

/** The next build stays under way until the test says otherwise. */
function held(): Promise<FakeBuild> {
  return new Promise((resolve) => {
    cluster.agent.onBuild = (build) => resolve(build);
  });
}

describe("from request to sandbox", () => {
  test("requested, started, building at the first look, ready, used", async () => {
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
    // Wanted for as long as the build is there.
    expect((await cluster.agent.beat()).deleteSnapshots).toEqual([]);
  });

  test("snapshots that a node keeps for a running build are not treated as strays", async () => {
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
    expect((await cluster.agent.beat()).pools.map(({ build }) => build.buildId)).toContain(first.buildID);
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
    const pools = (await cluster.agent.beat()).pools.map(({ build }) => build.buildId);
    expect(pools).toContain(second.buildID);
    expect(pools).not.toContain(first.buildID);
  });

  test("a pool entry of a template with memory belongs to its build, and its sandboxes still start as copies", async () => {
    const first = await built("server", { startCmd: "serve" });
    for (let use = 0; use < 3; use++) await create("server");
    const pooled = async () => (await cluster.agent.beat()).pools.filter(({ build }) => build.image !== "svc/base");
    const target = ({ templateID, buildID }: Requested) => ({
      build: { templateId: templateID, buildId: buildID, image: `built:${buildID}` },
      size: 3,
    });
    expect(await pooled()).toContainEqual(expect.objectContaining(target(first)));
    await create("server");
    const { build, resources, origin } = cluster.agent.starts.at(-1)?.body ?? {};
    expect(origin).toMatchObject({ is: "snapshot", memory: true });
    // What the pool is keyed by.
    expect(await pooled()).toContainEqual({ build, resources, size: 4 });
    const second = await built("server", { startCmd: "serve" });
    const now = (await pooled()).map((one) => one.build.buildId);
    expect(now).toContain(second.buildID);
    expect(now).not.toContain(first.buildID);
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

describe("logs", () => {
  test("come a hundred at a time from the offset, and end", async () => {
    cluster.agent.onBuild = (build) => {
      for (let index = 0; index < 1234; index++) build.log(`line ${index}`, { level: index === 7 ? "warn" : "info" });
      build.ready();
    };
    const build = await built("app");
    const seen: string[] = [];
    for (;;) {
      const { logEntries } = await status(build, `?logsOffset=${seen.length}`);
      if (logEntries.length === 0) break;
      expect(logEntries.length).toBeLessThanOrEqual(100);
      seen.push(...logEntries.map(({ message }) => message));
    }
    expect(seen).toEqual(Array.from({ length: 1234 }, (_, index) => `line ${index}`));
    expect((await status(build, "?limit=3&logsOffset=5")).logEntries.map(({ message }) => message)).toEqual(
      seen.slice(5, 8),
    );
    expect((await status(build, "?level=warn")).logEntries.map(({ message }) => message)).toEqual(["line 7"]);
    const path = `/templates/${build.templateID}/builds/${build.buildID}/logs`;
    const logs = async (query: string) =>
      ((await cluster.ask("GET", `${path}${query}`)).body as { logs: { message: string }[] }).logs.map(
        ({ message }) => message,
      );
    expect(await logs("?limit=2")).toEqual(["line 1233", "line 1232"]);
    expect(await logs("?limit=2&direction=forward")).toEqual(["line 0", "line 1"]);
    expect(await logs("?direction=forward&cursor=99999999999999")).toEqual([]);
  });
});

test("an endless log is cut with an entry that says so, and the build continues", async () => {
  cluster.agent.onBuild = (build) => {
    for (let index = 0; index < 20_500; index++) build.log(`line ${index}`);
    build.log("x".repeat(100_000));
    build.ready();
  };
  const build = await built("app");
  const { logEntries } = await status(build, "?logsOffset=19990");
  expect(logEntries.map(({ message }) => message).slice(-2)).toEqual([
    "line 19998",
    "the log is too long: what follows is not kept",
  ]);
});

test("few entries that are very long are too much as well", async () => {
  cluster.agent.onBuild = (build) => {
    for (let index = 0; index < 1_100; index++) build.log("x".repeat(20_000), { step: "1" });
    build.ready();
  };
  const build = await built("app");
  const { logEntries } = await status(build, "?logsOffset=1000");
  expect(logEntries.length).toBeLessThan(30);
  expect(logEntries[0]?.message).toBe(`${"x".repeat(16_384)}…`);
  expect(logEntries.at(-1)).toMatchObject({ level: "warn", message: "the log is too long: what follows is not kept" });
  expect((await status(build, "?level=warn")).logEntries.length).toBe(1);
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

describe("what may not be", () => {
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
  ])("%j", async (body, code, words) => {
    const requested = await request({ name: "app" });
    const answer = await start(requested, body);
    expect([answer.status, messageOf(answer)]).toEqual([code, expect.stringContaining(words)]);
    // Refused, not started: it may be put right.
    expect(await status(requested)).toMatchObject({ status: "waiting" });
  });

  test("requests beyond the limits or outside the namespace", async () => {
    const ask = (body: object) => cluster.ask("POST", "/v3/templates", { body });
    expect(messageOf(await ask({}))).toBe("Name is required");
    expect((await ask({ name: "app", cpuCount: 33 })).body).toMatchObject({
      code: 400,
      message: "CPU count must be at most 32",
    });
    expect((await ask({ name: "other/app" })).status).toBe(400);
    expect((await ask({ name: "app", teamID: "prj_somebodyelse" })).status).toBe(403);
    expect((await ask({ name: "app", teamID: cluster.projectId })).status).toBe(202);
    // The platform's own name is no obstacle: it becomes one of the project's.
    expect(await request({ name: "base" })).toMatchObject({ names: ["test-project/base"] });
  });

  test("another project sees nothing of it", async () => {
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

describe("concurrency and crashes", () => {
  test("builds beyond the limit wait their turn, and are building all the same", async () => {
    await cluster.restart({ maxNodeBuilds: 1, buildPollMs: 20 });
    await cluster.agent.beat();
    const builds: FakeBuild[] = [];
    cluster.agent.onBuild = (build) => void builds.push(build);
    const requested = await Promise.all(["a", "b", "c"].map((name) => request({ name })));
    for (const each of requested) await start(each);
    for (const each of requested) expect(await status(each)).toMatchObject({ status: "building" });
    for (let done = 1; done <= 3; done++) {
      await expect.poll(() => builds.length).toBe(done);
      builds.at(-1)?.ready();
    }
    for (const each of requested) await expect.poll(() => status(each)).toMatchObject({ status: "ready" });
  });

  test("a newer build of the same name and tag supersedes the older one; another tag does not", async () => {
    cluster.agent.onBuild = () => undefined;
    const [old, other, young] = [
      await request({ name: "app:v1" }),
      await request({ name: "app:v2" }),
      await request({ name: "app", tags: ["v1"] }),
    ];
    await start(old);
    await start(other);
    await expect.poll(() => cluster.agent.builds.size).toBe(2);
    await start(young);
    expect(await status(old)).toMatchObject({
      status: "error",
      reason: { message: expect.stringContaining("superseded") as string },
    });
    expect(await status(other)).toMatchObject({ status: "building" });
    await expect.poll(() => cluster.agent.buildsDeleted).toEqual([old.buildID]);
    await expect.poll(() => cluster.agent.builds.size).toBe(2);
    cluster.agent.builds.get(young.buildID)?.ready();
    await expect.poll(() => status(young)).toMatchObject({ status: "ready" });
  });

  test("a restart of the orchestrator in the middle loses nothing of the build or its log", async () => {
    const building = held();
    const requested = await request({ name: "app" });
    await start(requested);
    const build = await building;
    build.log("before");
    await expect.poll(async () => (await status(requested)).logEntries.length).toBe(1);
    await cluster.restart({}, () => build.log("meanwhile"));
    build.log("after");
    build.ready();
    await expect
      .poll(() => status(requested))
      .toMatchObject({
        status: "ready",
        logEntries: [{ message: "before" }, { message: "meanwhile" }, { message: "after" }],
      });
    expect(cluster.agent.buildsAsked.length).toBe(1);
  });

  test("a node that has forgotten the build fails it with a reason, and the next build works", async () => {
    const building = held();
    const requested = await request({ name: "app" });
    await start(requested);
    await building;
    await expect.poll(async () => (await status(requested)).status).toBe("building");
    cluster.agent.builds.clear();
    await expect
      .poll(() => status(requested))
      .toMatchObject({
        status: "error",
        reason: { message: expect.stringContaining("does not know the build any more") as string },
        logEntries: [{ level: "error" }],
      });
    cluster.agent.onBuild = (_build, run) => run();
    await built("app");
  });

  test("a node that never answered gets the same build again", async () => {
    let refusals = 2;
    cluster.agent.onBuildCall = (call) => {
      if (call === "start" && refusals-- > 0) throw new AppError("unavailable", "in a moment");
    };
    await built("app");
    expect(cluster.agent.buildsAsked.length).toBe(1);
  });

  test("a node that is silent for too long fails its builds", async () => {
    cluster.agent.onBuild = () => undefined;
    const requested = await request({ name: "app" });
    await start(requested);
    await expect.poll(() => cluster.agent.builds.size).toBe(1);
    cluster.agent.onBuildCall = (call) => {
      if (call === "state") throw new AppError("unavailable", "away");
    };
    await cluster.restart({ nodeLostMs: 300 });
    await expect
      .poll(() => status(requested))
      .toMatchObject({
        status: "error",
        reason: { message: expect.stringContaining("node n1 has not answered for") as string },
      });
  });

  test("a build whose base is deleted while it waits for its node fails for that reason", async () => {
    await built("parent");
    cluster.agent.onBuildCall = (call) => {
      if (call === "start") throw new AppError("node_busy", "no room");
    };
    const child = await request({ name: "child" });
    await start(child, { fromTemplate: "parent" });
    expect((await cluster.ask("DELETE", "/templates/parent")).status).toBe(204);
    await expect
      .poll(() => status(child))
      .toMatchObject({
        status: "error",
        reason: { message: "the template it is based on was deleted" },
      });
  });

  test("without a node, a build fails for that reason", async () => {
    const alone = await startCluster({ agents: 0, config: { placementTimeoutMs: 100 } });
    onTestFinished(() => alone.stop());
    const requested = (await alone.ask("POST", "/v3/templates", { body: { name: "app" } })).body as Requested;
    const path = `/templates/${requested.templateID}/builds/${requested.buildID}/status`;
    await alone.ask("POST", `/v2/templates/${requested.templateID}/builds/${requested.buildID}`, { body: {} });
    await expect
      .poll(async () => (await alone.ask("GET", path)).body)
      .toMatchObject({
        status: "error",
        reason: { message: "no node could build it: no node has registered" },
      });
  });

  test("a build that takes too long fails, also on its node", async () => {
    cluster.agent.onBuild = () => undefined;
    const requested = await request({ name: "app" });
    await start(requested);
    await expect.poll(() => cluster.agent.builds.size).toBe(1);
    // As if the hour and its slack were over.
    await cluster.restart({}, async () => {
      await cluster.database.query("update builds set deadline_at = 1 where status = 'building'");
    });
    await expect
      .poll(() => status(requested))
      .toMatchObject({
        status: "error",
        reason: { message: expect.stringContaining("took longer") as string },
      });
    await expect.poll(() => cluster.agent.buildsDeleted).toContain(requested.buildID);
  });

  test("an operator cancels what a project is building", async () => {
    cluster.agent.onBuild = () => undefined;
    const requested = await request({ name: "app" });
    await start(requested);
    await expect.poll(() => cluster.agent.builds.size).toBe(1);
    const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
    const answer = await cluster.ask("POST", `/admin/teams/${cluster.teamId}/builds/cancel`, admin);
    expect(answer.body).toEqual({ cancelledCount: 1, failedCount: 0 });
    expect(await status(requested)).toMatchObject({ status: "error" });
    await expect.poll(() => cluster.agent.buildsDeleted).toEqual([requested.buildID]);
  });
});
