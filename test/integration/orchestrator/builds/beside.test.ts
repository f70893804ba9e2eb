/**
 * Two orchestrators on one PostgreSQL database, with builds: one of them gives nodes and follows, whoever was asked; the
 * registry's credentials stay with the one that got them.
 */

import { sql } from "kysely";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Base } from "../../../../orchestrator/base/base.ts";
import type { BuildCleaning } from "../../../../orchestrator/builds/cleanup.ts";
import { startBuildQueue } from "../../../../orchestrator/builds/queue.ts";
import { OrchestratorConfig } from "../../../../orchestrator/config.ts";
import type { Images } from "../../../../orchestrator/lifecycle/start/images.ts";
import type { Metrics } from "../../../../orchestrator/metrics/prometheus.ts";
import type { Nodes } from "../../../../orchestrator/nodes/nodes.ts";
import type { Candidate } from "../../../../orchestrator/nodes/placement/candidate.ts";
import type { Pools } from "../../../../orchestrator/nodes/pools/pool-targets.ts";
import { joinMembers } from "../../../../orchestrator/store/membership/membership.ts";
import { createStore } from "../../../../orchestrator/store/store.ts";
import type { BuildBody } from "../../../../shared/agent-api/build-shapes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { readConfig } from "../../../../shared/program/config.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { createFakeBuilds } from "../../../support/fakes/fake-agent-builds.ts";
import { type PostgresServer, startPostgres } from "../../../support/postgres/cluster.ts";
import { newDatabase, openBeside, type TestDatabase } from "../../../support/store/databases.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });
const ACCESS = { type: "registry", username: "me", password: "the password of the registry" } as const;
const SETTINGS = {
  SVC_ADMIN_TOKEN: "0123456789abcdef",
  SVC_NODE_KEY: "0123456789abcdef",
  SVC_SEED: "0123456789abcdef",
  SVC_ENCRYPTION_KEY: "0123456789abcdef",
};
const GIB = 1024 ** 3;
const ROOMY: Candidate = {
  id: "n1",
  status: "ready",
  labels: {},
  cpuCount: 8,
  cpuPercent: 0,
  memoryTotalBytes: 32 * GIB,
  allocatedCpu: 0,
  allocatedMemoryBytes: 0,
  sandboxCount: 0,
  maxSandboxes: 100,
  disk: undefined,
};

let server: PostgresServer | undefined;
let database: TestDatabase;
beforeAll(async () => {
  const shared = process.env["SVC_TEST_POSTGRES"];
  server = shared === undefined ? await startPostgres() : undefined;
  database = await newDatabase({ server: server?.url ?? shared ?? null });
}, 120_000);
afterAll(async () => {
  await database.drop();
  await server?.stop();
}, 60_000);

/** A node, which says who has called it. */
function node() {
  const { state, handlers } = createFakeBuilds({ snapshots: new Map(), files: () => Promise.resolve(Buffer.alloc(0)) });
  const callers = new Map<string, Set<string>>();
  const agentOf = (caller: string) => ({
    startBuild: (call: never) => called(caller, call, handlers.startBuild),
    buildState: (call: never) => called(caller, call, handlers.buildState),
  });
  function called(caller: string, call: { readonly params: { readonly buildId: string } }, work: unknown): unknown {
    const { buildId } = call.params;
    callers.set(buildId, (callers.get(buildId) ?? new Set()).add(caller));
    return (work as (input: unknown) => unknown)(call);
  }
  return { state, agentOf, callersOf: (id: string) => [...(callers.get(id) ?? [])] };
}

async function orchestrator(name: string, place: ReturnType<typeof node>) {
  const opened = await openBeside(database.place);
  const given = { log, now: Date.now, version: "0", leaseMs: 600_000, onDifference: () => undefined };
  const members = await joinMembers(opened.database, given);
  const store = createStore(opened.database, Date.now, testSeal, { members });
  const nodes = {
    candidates: () => [ROOMY],
    agent: () => place.agentOf(name),
    placing: () => () => undefined,
  } as unknown as Nodes;
  const config = { ...readConfig(OrchestratorConfig, SETTINGS), buildPollMs: 20 };
  const base = {
    config,
    sealing: testSeal,
    now: Date.now,
    random: Math.random,
    log,
    leases: members,
  } as unknown as Base;
  const queue = startBuildQueue({
    base,
    store,
    nodes,
    // None of these builds is based on a template.
    images: {} as Images,
    pools: { replaced: () => undefined } as unknown as Pools,
    metrics: { built: () => undefined } as unknown as Metrics,
    cleaning: { soon: () => undefined } as unknown as BuildCleaning,
  });
  const stopped = { is: false };
  async function stop(): Promise<void> {
    if (stopped.is) return;
    stopped.is = true;
    await queue.stop();
    await members.stop();
    await opened.close();
  }
  onTestFinished(stop);
  return { store, queue, members, database: opened.database, stop };
}

type Orchestrator = Awaited<ReturnType<typeof orchestrator>>;

async function two() {
  const place = node();
  const first = await orchestrator("first", place);
  // Rounds of the first one have begun: it leads.
  await expect
    .poll(() => database.query("select owner from leases where name = 'builds'"))
    .toEqual([{ owner: first.members.self?.id }]);
  const second = await orchestrator("second", place);
  const project = await first.store.projects.create("team");

  async function start({ store, queue }: Orchestrator, name: string, access?: typeof ACCESS): Promise<string> {
    const resources = { cpuCount: 1, memoryMB: 128, diskSizeMB: 0 };
    const ask = {
      projectId: project.id,
      namespace: project.slug,
      name,
      tags: ["default"],
      resources,
      envdVersion: "1",
    };
    const id = (await store.builds.request(ask))?.build.id ?? "";
    const body: BuildBody = {
      templateId: "t",
      resources,
      from: { is: "image", image: "registry.test/app" },
      steps: [],
      force: false,
      limitMs: 60_000,
    };
    const sealedBody = testSeal.close(JSON.stringify(body), id);
    await queue.start({ id, sealedBody, parentBuildId: undefined, diskSizeMB: 0, files: [] }, access);
    return id;
  }
  const status = async (id: string) => (await first.store.templates.build(id))?.status;
  return { place, first, second, start, status };
}

test("each build is given to a node and followed by one, whichever was asked, until that one has gone", async () => {
  const { place, first, second, start } = await two();
  place.state.onBuild = () => undefined;
  const ids = [await start(first, "asked-first"), await start(second, "asked-second")];
  await expect.poll(() => ids.map((id) => place.callersOf(id))).toEqual([["first"], ["first"]]);
  // The second one sees them in its rounds, and leaves them alone.
  await expect
    .poll(async () => (await second.store.builds.underWay()).map(({ accepted }) => accepted))
    .toEqual([true, true]);
  expect(place.state.buildsAsked).toHaveLength(2);
  await first.stop();
  for (const build of place.state.builds.values()) build.ready();
  await expect
    .poll(async () =>
      (await Promise.all(ids.map((id) => second.store.templates.build(id)))).map((build) => build?.status),
    )
    .toEqual(["ready", "ready"]);
  expect(ids.map((id) => place.callersOf(id))).toEqual([
    ["first", "second"],
    ["first", "second"],
  ]);
});

test("a build with credentials is started by the one that has them, and followed by the leading one from then on", async () => {
  const { place, second, start, status } = await two();
  place.state.onBuild = () => undefined;
  const id = await start(second, "private", ACCESS);
  await expect.poll(() => place.state.buildsAsked.map(({ from }) => from)).toMatchObject([{ access: ACCESS }]);
  await expect.poll(() => place.callersOf(id)).toEqual(["second", "first"]);
  place.state.builds.get(id)?.ready();
  await expect.poll(() => status(id)).toBe("ready");
  expect(await database.stored()).not.toContain(ACCESS.password);
});

test("a build whose credentials went with their orchestrator fails, and not before", async () => {
  const { place, first, second, start, status } = await two();
  place.state.onBuildCall = (call) => {
    if (call === "start") throw new AppError("node_unreachable", "silent");
  };
  const id = await start(second, "private-lost", ACCESS);
  await expect.poll(() => place.callersOf(id)).toEqual(["second"]);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(await status(id)).toBe("building");
  expect(place.callersOf(id)).toEqual(["second"]);
  // Its process has gone without a word.
  await second.queue.stop();
  await sql`update orchestrators set expires_at = 0 where id = ${second.members.self?.id}`.execute(first.database);
  await expect.poll(() => status(id)).toBe("error");
  expect((await first.store.templates.build(id))?.reason?.message).toContain("credentials were in memory only");
});
