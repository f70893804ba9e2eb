/**
 * Template builds while they run: their logs, many builds at once, and their fate when a node or the orchestrator is lost.
 */

import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import { BUILDING, buildingOn, type Requested } from "../../../support/cluster/building.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import type { FakeBuild } from "../../../support/fakes/fake-agent-builds.ts";

let cluster: Cluster;
beforeEach(async () => {
  cluster = await startCluster(BUILDING);
});
afterEach(() => cluster.stop());

const { built, held, request, start, status } = buildingOn(() => cluster);

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

test("an endless log is cut, with an entry about the cut, and the build continues", async () => {
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

describe("concurrency and crashes", () => {
  test("builds beyond the limit wait, and their status is building already", async () => {
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
        reason: { message: expect.stringContaining("no longer has the build") as string },
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
    // A past deadline, as if the hour and its slack were over.
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
