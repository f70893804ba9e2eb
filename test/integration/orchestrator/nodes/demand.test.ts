/** Nodes get the same targets of warm containers from two orchestrators on one database, and from one that was restarted. */

import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createBackground } from "../../../../orchestrator/base/background.ts";
import { createPools } from "../../../../orchestrator/nodes/pools/pool-targets.ts";
import { shareDemand } from "../../../../orchestrator/nodes/pools/shared-demand.ts";
import type { Build } from "../../../../orchestrator/store/builds/record.ts";
import { CHANNEL, changeLog } from "../../../../orchestrator/store/changes/changes.ts";
import { createFeed } from "../../../../orchestrator/store/changes/feed.ts";
import type { OpenedDatabase } from "../../../../orchestrator/store/database.ts";
import { joinMembers } from "../../../../orchestrator/store/membership/membership.ts";
import type { Project } from "../../../../orchestrator/store/projects/record.ts";
import { createStore, type Store } from "../../../../orchestrator/store/store.ts";
import { newSandboxId } from "../../../../shared/ids.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { startCluster } from "../../../support/cluster/cluster.ts";
import type { TestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { openShared, type SharedDatabase } from "../../../support/store/shared-database.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });
const BASE = { image: "i", cpuCount: 1, memoryMB: 128, diskSizeMB: 0, envdVersion: "1" };
/** Each orchestrator looks every two seconds. */
const WAIT = { timeout: 30_000 };
const MOUNT = { id: "v", name: "v", path: "/v" };

let shared: SharedDatabase;
let database: TestDatabase;
let opened: readonly [OpenedDatabase, OpenedDatabase];
beforeAll(async () => {
  shared = await openShared();
  ({ database, opened } = shared);
}, 120_000);
afterAll(() => shared.close(), 60_000);

async function orchestrator({ database: db, listen }: OpenedDatabase) {
  if (listen === undefined) throw new Error("the database is on no server");
  const given = { log, now: Date.now, version: "0", leaseMs: 600_000, onDifference: () => undefined };
  const members = await joinMembers(db, given);
  const store = createStore(db, Date.now, testSeal, { members });
  const base = await store.templates.seed("base", BASE);
  const changes = changeLog(db, () => members.self);
  const feed = await createFeed({ changes, log, listen: (told) => listen({ ...told, channel: CHANNEL, log }) });
  const platform = await store.templates.promotedBuilds();
  const own = createPools({ base, platform, baseSize: 0, keptSize: 2, ceiling: 8, now: Date.now });
  const background = createBackground(log);
  const demand = shareDemand({ own, store, feed, background, now: Date.now, log });
  feed.start();
  onTestFinished(async () => {
    await demand.stop();
    await background.settled();
    await feed.stop();
    await members.stop();
  });
  const targets = () =>
    Object.fromEntries(demand.pools.targets("n1", 1).map(({ build, size }) => [build.buildId, size]));
  return { store, pools: demand.pools, targets };
}

async function two() {
  const first = await orchestrator(opened[0]);
  const second = await orchestrator(opened[1]);
  const project = await first.store.projects.create("demand");

  /** A build that is ready, and the builds that its tag named before. */
  async function build(name: string): Promise<{ readonly build: Build; readonly former: ReadonlySet<string> }> {
    const { builds } = first.store;
    const resources = { cpuCount: 1, memoryMB: 128, diskSizeMB: 0 };
    const ask = {
      projectId: project.id,
      namespace: project.slug,
      name,
      tags: ["default"],
      resources,
      envdVersion: "1",
    };
    const id = (await builds.request(ask))?.build.id ?? "";
    const started = { id, sealedBody: "", withAccess: false, parentBuildId: undefined, diskSizeMB: 0, files: [] };
    await builds.start({ ...started, deadlineAt: Date.now() + 60_000 });
    const made = { image: "i", sealedSettings: "", user: "u", workdir: "/", envdVersion: "1", snapshot: undefined };
    const finished = await builds.finish(id, made);
    if (finished === undefined) throw new Error("the build is not ready");
    return finished;
  }
  return { first, second, project, build };
}

/** Creates sandboxes of the build, as one of the orchestrators does. */
async function creates(
  { store, pools }: { readonly store: Store; readonly pools: Awaited<ReturnType<typeof orchestrator>>["pools"] },
  of: { readonly project: Project; readonly build: Build },
  mounts: readonly (typeof MOUNT)[][],
  askedAt: (index: number) => number = () => Date.now(),
): Promise<void> {
  for (const [index, volumeMounts] of mounts.entries()) {
    const { project, build } = of;
    const id = newSandboxId();
    const place = { projectId: project.id, templateId: build.templateId, buildId: build.id };
    await store.sandboxes.add(newSandbox({ id, executionId: `e-${id}`, ...place }), { sandboxes: 100 });
    if (volumeMounts.length > 0)
      await database.query("update sandboxes set volume_mounts = ? where id = ?", JSON.stringify(volumeMounts), id);
    await database.query("update sandboxes set created_at = ? where id = ?", askedAt(index), id);
    await store.move({ id, to: "running", set: { address: "127.0.0.1" } }, { type: "created" });
    if (volumeMounts.length === 0) pools.used(build);
  }
}

test("starts at either orchestrator count once at both, but not those with volumes, and a later process counts them too", async () => {
  const { first, second, project, build } = await two();
  const { build: app } = await build("counted");
  await creates(first, { project, build: app }, [[], [], [MOUNT]]);
  await creates(second, { project, build: app }, [[], []]);
  for (const { targets } of [first, second]) await expect.poll(targets, WAIT).toEqual({ [app.id]: 4 });
  const third = await orchestrator(opened[0]);
  await expect.poll(third.targets, WAIT).toEqual({ [app.id]: 4 });
});

test("starts count by the times of their requests, so a burst that waits for its turns is one, and starts that were asked for apart are none", async () => {
  const { first, second, project, build } = await two();
  const { build: app } = await build("asked");
  const now = Date.now();
  await creates(first, { project, build: app }, [[], [], [], []], (index) => now - index * 60_000);
  await expect.poll(() => second.targets()[app.id], WAIT).toBe(1);
  await creates(first, { project, build: app }, [[], [], []], () => now - 600_000);
  await expect.poll(() => second.targets()[app.id], WAIT).toBe(3);
});

test("a new build gets the demand of the one whose tag it takes at both, and a deleted one has none", async () => {
  const { first, second, project, build } = await two();
  const { build: old } = await build("replaced");
  await creates(first, { project, build: old }, [[], [], []]);
  for (const { targets } of [first, second]) await expect.poll(targets, WAIT).toMatchObject({ [old.id]: 3 });
  const { build: next, former } = await build("replaced");
  first.pools.replaced(former, next);
  for (const { targets } of [first, second]) {
    await expect.poll(targets, WAIT).toMatchObject({ [next.id]: 3 });
    expect(targets()).not.toHaveProperty(old.id);
  }
  await database.query("delete from builds where id = ?", next.id);
  first.pools.gone([next.id]);
  for (const { targets } of [first, second]) await expect.poll(targets, WAIT).not.toHaveProperty(next.id);
});

test("a template that one orchestrator makes the platform's own is kept warm by both", async () => {
  const { first, second, build } = await two();
  const { build: app } = await build("promoted");
  expect(await first.store.templates.promote(app.templateId, "promoted")).toBe(true);
  first.pools.keep(app);
  for (const { targets } of [first, second]) await expect.poll(targets, WAIT).toMatchObject({ [app.id]: 2 });
});

test("a node is asked for as many warm containers after a restart of the orchestrator as before", async () => {
  const cluster = await startCluster({ config: { maxProjectSandboxes: 30, rateLimitCreatePerSecond: 10_000 } });
  onTestFinished(() => cluster.stop());
  const asked = async () => {
    await cluster.agent.beat();
    return cluster.agent.pools().map(({ size }) => size);
  };
  expect((await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", count: 9 } })).status).toBe(201);
  await expect.poll(asked, WAIT).toEqual([9]);
  await cluster.restart();
  await expect.poll(asked, WAIT).toEqual([9]);
});
