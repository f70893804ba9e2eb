/** The record of a start: it follows a search that goes on, and what the database does not take leaves nothing on the node. */

import { beforeEach, expect, onTestFinished, test } from "vitest";
import { createEnding } from "../../../../orchestrator/lifecycle/ending/kill.ts";
import { createLaunch } from "../../../../orchestrator/lifecycle/start/launch.ts";
import type { LaunchDeps, LaunchRequest } from "../../../../orchestrator/lifecycle/start/launch-request.ts";
import type { Nodes } from "../../../../orchestrator/nodes/nodes.ts";
import type { Candidate } from "../../../../orchestrator/nodes/placement/candidate.ts";
import type { SandboxRecord } from "../../../../orchestrator/store/sandboxes/record.ts";
import { createStore, type Store } from "../../../../orchestrator/store/store.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { OPEN } from "../../../../shared/policy/egress-policy.ts";
import { lifecycleCore } from "../../../support/fakes/lifecycle-core.ts";
import { openTestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const ID = "isandbox";
const NODE = "n1";
const GIB = 1024 ** 3;

/** Milliseconds; only the tests move it. */
let clock = 0;
/** What the node does with a start, before it runs the execution. */
let onStart: () => Promise<void> = () => Promise.resolve();

beforeEach(() => {
  clock = 1_000;
  onStart = () => Promise.resolve();
});

const candidate: Candidate = {
  id: NODE,
  status: "ready",
  labels: {},
  cpuCount: 4,
  cpuPercent: 0,
  memoryTotalBytes: 8 * GIB,
  allocatedCpu: 0,
  allocatedMemoryBytes: 0,
  sandboxCount: 0,
  maxSandboxes: 100,
  disk: undefined,
};

/** One node, one database, and a launch. */
async function world() {
  const opened = await openTestDatabase();
  onTestFinished(() => opened.close());
  const own = createStore(opened.database, () => clock, testSeal);
  const state = { away: false };
  const store: Store = {
    ...own,
    move: (...given) => (state.away ? Promise.reject(new Error("the database is away")) : own.move(...given)),
  };
  const live = new Set<string>();
  const agent = {
    async startExecution({ params }: { readonly params: { readonly executionId: string } }) {
      await onStart();
      live.add(params.executionId);
      return { address: "10.0.0.2", envdVersion: "1", warm: true, restored: "nothing" };
    },
    stopExecution({ params }: { readonly params: { readonly executionId: string } }) {
      live.delete(params.executionId);
      return Promise.resolve();
    },
  };
  const nodes = {
    agent: () => agent,
    candidates: () => [candidate],
    get: () => ({ status: "ready", facts: { startsAtOnce: 1, capabilities: {} } }),
    hasOthers: () => false,
    list: () => [],
    placing: () => () => undefined,
    freed: () => undefined,
  } as unknown as Nodes;
  const base = lifecycleCore({ store, nodes, now: () => clock });
  const timeouts = { ...base.timeouts, startTimeoutMs: 20_000, placementTimeoutMs: 55_000, startQueueMs: 600_000 };
  const core = { ...base, timeouts };
  const ending = createEnding({ core, observe: () => undefined });
  const images = { holders: () => new Set(), refusals: () => [] };
  const placement = { cpuOvercommit: 4, memoryOvercommit: 2, diskOvercommit: 3 };
  const launch = createLaunch({ core, placement, ending, images, observe: () => undefined } as unknown as LaunchDeps);
  const request = {
    sandbox: newSandbox({ id: ID, timeoutSeconds: 300 }),
    start: {
      build: { templateId: "t1", buildId: "b1", image: "" },
      resources: { cpuCount: 1, memoryMB: 128, diskSizeMB: 0 },
      egress: OPEN,
    },
    limit: { sandboxes: 5 },
  } as unknown as LaunchRequest;
  const abandoned = async () => (await own.sandboxes.stuck(clock, 10)).map(({ id }) => id);
  const record = async () => (await own.sandboxes.get(ID)) as SandboxRecord;
  return { state, live, core, ending, record, abandoned, launch: () => launch(request) };
}

test("a start that its node refuses as busy for minutes never counts as abandoned, and runs in the end", async () => {
  const { launch, abandoned, record } = await world();
  let left = 15;
  onStart = async () => {
    clock += 20_000;
    expect(await abandoned()).toEqual([]);
    if (left-- > 0) throw new AppError("node_busy", "no turn");
  };
  await launch();
  expect((await record()).state).toBe("running");
  expect(clock).toBeGreaterThan(300_000);
});

test("a start whose orchestrator dies after many refusals of its node is overdue after the placement's time and half a minute", async () => {
  const { launch, abandoned } = await world();
  let left = 15;
  let died: () => void = () => undefined;
  const death = new Promise<void>((resolve) => (died = resolve));
  onStart = () => {
    clock += 20_000;
    if (left-- > 0) return Promise.reject(new AppError("node_busy", "no turn"));
    died();
    return new Promise(() => undefined);
  };
  void launch();
  await death;
  clock += 55_000 + 30_000;
  expect(await abandoned()).toEqual([ID]);
});

test("an execution whose start the database does not take is ended on its node, and its record is overdue later", async () => {
  const { launch, live, core, state, abandoned } = await world();
  onStart = () => Promise.resolve(void (state.away = true));
  await expect(launch()).rejects.toThrow("the database is away");
  await core.background.settled();
  expect([...live]).toEqual([]);
  state.away = false;
  expect(await abandoned()).toEqual([]);
  clock += 55_000 + 30_000;
  expect(await abandoned()).toEqual([ID]);
});

test("a start that was killed is not asked for again, and the time of its kill stays", async () => {
  const { launch, record, core } = await world();
  let left = 15;
  let asked = 0;
  onStart = async () => {
    clock += 20_000;
    if (asked++ === 0)
      await core.store.move({
        id: ID,
        to: "killing",
        set: { endAt: clock, end: { reason: "request" }, deadlineAt: 7 },
      });
    if (left-- > 0) throw new AppError("node_busy", "no turn");
  };
  await expect(launch()).rejects.toMatchObject({ code: "conflict" });
  expect(asked).toBe(1);
  expect(await record()).toMatchObject({ state: "killing" });
  expect((await core.store.sandboxes.stuck(7, 10)).map(({ id }) => id)).toEqual([ID]);
});
