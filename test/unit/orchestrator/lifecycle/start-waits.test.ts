/** The time that a start waits for its turn is not part of its placement's time: its request's limit ends the wait. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Core } from "../../../../orchestrator/lifecycle/core.ts";
import type { LaunchDeps, LaunchRequest } from "../../../../orchestrator/lifecycle/start/launch-request.ts";
import { Search } from "../../../../orchestrator/lifecycle/start/search.ts";
import type { Candidate } from "../../../../orchestrator/nodes/placement/candidate.ts";
import { createStartTurns } from "../../../../orchestrator/nodes/start-turns.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { OPEN } from "../../../../shared/policy/egress-policy.ts";
import { createLog } from "../../../../shared/program/log.ts";

const NODE = "n1";
const TURNS = 4;
const GIB = 1024 ** 3;
const MAX_MS = 600_000;
const EXECUTION = { executionId: "e1", nodeId: NODE };
const log = createLog({ component: "test", level: "silent" });

/** Milliseconds; only the tests move it. */
let clock = 0;
/** The limits of the calls that the node has got. */
let limits: number[] = [];
let status: Candidate["status"] = "ready";
/** What the node does with a start. */
let onStart: () => Promise<object> = () => Promise.resolve({});

beforeEach(() => {
  clock = 1_000;
  limits = [];
  status = "ready";
  onStart = () => Promise.resolve({});
});

const candidate = (): Candidate => ({
  id: NODE,
  status,
  labels: {},
  cpuCount: 4,
  cpuPercent: 0,
  memoryTotalBytes: 8 * GIB,
  allocatedCpu: 0,
  allocatedMemoryBytes: 0,
  sandboxCount: 0,
  maxSandboxes: 100,
  disk: undefined,
});

function world(timeouts: Partial<Core["timeouts"]> = {}) {
  const view = () => ({ status, facts: { startsAtOnce: 1, capabilities: {} } });
  const agent = {
    startExecution(_start: unknown, { timeoutMs }: { readonly timeoutMs: number }) {
      limits.push(timeoutMs);
      return onStart();
    },
  };
  const nodes = {
    candidates: () => [candidate()],
    get: view,
    hasOthers: () => false,
    placing: () => () => undefined,
    agent: () => agent,
  } as unknown as Core["nodes"];
  const turns = createStartTurns(nodes);
  const core = {
    nodes,
    turns,
    timeouts: { startTimeoutMs: 20_000, placementTimeoutMs: 55_000, startQueueMs: MAX_MS, ...timeouts },
    background: { run: () => undefined },
    now: () => clock,
    random: () => 0,
    log,
  };
  const deps = {
    core,
    placement: { cpuOvercommit: 4, memoryOvercommit: 2, diskOvercommit: 3 },
    images: { holders: () => new Set(), refusals: () => [] },
  } as unknown as LaunchDeps;
  /** A fork: one node alone has what it starts from. */
  const fork = (more: Partial<LaunchRequest> = {}, moved?: (deadline: number) => Promise<boolean>) =>
    new Search(
      {
        sandbox: { id: "s1", projectId: "p1", timeoutSeconds: 300 },
        start: {
          build: { templateId: "t1", buildId: "b1", image: "" },
          resources: { cpuCount: 1, memoryMB: 512, diskSizeMB: 0 },
          egress: OPEN,
          origin: { is: "snapshot", snapshotId: "k1", memory: true },
        },
        nodeId: NODE,
        ...more,
      } as unknown as LaunchRequest,
      deps,
      moved,
    );
  /** Other projects take all turns of the node. */
  const busy = async () => {
    const since = 0;
    const { signal } = new AbortController();
    const owners = Array.from({ length: TURNS }, (_, index) => `other ${index}`);
    const held = await Promise.all(owners.map((owner) => turns.take(NODE, { owner, since, signal })));
    return () => {
      for (const { release } of held) release();
    };
  };
  const waiting = () => turns.waiting().get(NODE) ?? 0;
  return { fork, busy, waiting };
}

/** As `launch` does it: attempts until one has started. */
async function launched(search: Search): Promise<object> {
  for (;;) {
    const { placed } = await search.node();
    const started = await search.attempt(EXECUTION, placed);
    if (started !== undefined) return started;
  }
}

const reasonOf = (work: Promise<unknown>) =>
  work.then(
    () => "it started",
    (error: unknown) => {
      const { code, message } = AppError.from(error);
      return { code, message };
    },
  );

const BUSY = {
  code: "cluster_at_capacity",
  message: "Failed to place sandbox: cluster at capacity: every node is busy starting sandboxes",
};

describe("a start that waits for its turn", () => {
  test("longer than a placement may take has the whole time of a start on the node afterwards", async () => {
    const { fork, busy, waiting } = world();
    const giveBack = await busy();
    const starting = launched(fork());
    await expect.poll(waiting).toBe(1);
    clock += 300_000;
    giveBack();
    await starting;
    expect(limits).toEqual([20_000]);
  });

  test("is refused as cluster_at_capacity when its request has waited as long as it may", async () => {
    const { fork, busy, waiting } = world();
    await busy();
    const since = clock - MAX_MS + 200;
    const starting = reasonOf(launched(fork({ since })));
    await expect.poll(waiting, { interval: 5 }).toBe(1);
    clock += 200;
    expect(await starting).toEqual(BUSY);
    expect([limits, waiting()]).toEqual([[], 0]);
  });

  test("behind the other starts of its request has no more time than they, and starts where a turn is free", async () => {
    const { fork, busy } = world();
    const since = clock - MAX_MS;
    await launched(fork({ since }));
    const giveBack = await busy();
    expect(await reasonOf(launched(fork({ since })))).toEqual(BUSY);
    giveBack();
    expect(limits).toEqual([20_000]);
  });

  test("gives its place up when its caller leaves, and the next one gets the turn", async () => {
    const { fork, busy, waiting } = world();
    const giveBack = await busy();
    const leaving = new AbortController();
    const left = reasonOf(launched(fork({ signal: leaving.signal })));
    const next = launched(fork());
    await expect.poll(waiting).toBe(2);
    leaving.abort();
    expect(await left).toMatchObject({ code: "unavailable" });
    expect(waiting()).toBe(1);
    giveBack();
    await next;
    expect(limits).toHaveLength(1);
  });

  test("on a node that dies meanwhile is refused with the reason once it has the turn, and gives the turn back", async () => {
    const { fork, busy, waiting } = world();
    const giveBack = await busy();
    const starts = [reasonOf(launched(fork())), reasonOf(launched(fork()))];
    await expect.poll(waiting).toBe(2);
    status = "unhealthy";
    giveBack();
    for (const start of starts) expect(await start).toMatchObject({ code: "no_compatible_node" });
    expect([limits, waiting()]).toEqual([[], 0]);
  });
});

describe("a start that waits for its turn for long", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const pass = async (ms: number) => {
    clock += ms;
    await vi.advanceTimersByTimeAsync(ms);
  };

  /** @param told is called each time that the search tells of its deadline */
  async function waitingStart(told: (deadline: number) => Promise<boolean>) {
    const { fork, busy, waiting } = world();
    const giveBack = await busy();
    const search = fork({}, told);
    const before = search.deadline;
    const outcome = reasonOf(launched(search));
    await pass(0);
    return { before, outcome, waiting, giveBack, busy };
  }

  test("tells every ten seconds how its deadline moves, so that its record is never that of an abandoned start, and keeps its place", async () => {
    const told: number[] = [];
    const places: number[] = [];
    const { before, outcome, waiting, giveBack } = await waitingStart((deadline) => {
      told.push(deadline);
      places.push(waiting());
      return Promise.resolve(true);
    });
    for (let round = 0; round < 3; round++) await pass(10_000);
    expect(told).toEqual([before + 10_000, before + 20_000, before + 30_000]);
    expect(places).toEqual([1, 1, 1]);
    giveBack();
    expect(await outcome).toBe("it started");
    expect(limits).toEqual([20_000]);
  });

  test("goes on waiting while its record cannot be written", async () => {
    let failures = 1;
    const { outcome, waiting, giveBack } = await waitingStart(() =>
      failures-- > 0 ? Promise.reject(new Error("the database is away")) : Promise.resolve(true),
    );
    await pass(10_000);
    expect(waiting()).toBe(1);
    giveBack();
    expect(await outcome).toBe("it started");
  });

  test("does not begin while its record cannot be written, and gives the turn back", async () => {
    const away = () => Promise.reject(new Error("the database is away"));
    const { outcome, waiting, giveBack, busy } = await waitingStart(away);
    giveBack();
    expect(await outcome).toMatchObject({ code: "internal" });
    expect([limits, waiting()]).toEqual([[], 0]);
    // All turns are free: others get them.
    await busy();
  });

  test("leaves the line when its sandbox was killed meanwhile", async () => {
    const { outcome, waiting } = await waitingStart(() => Promise.resolve(false));
    await pass(10_000);
    expect(await outcome).toMatchObject({ code: "conflict", message: expect.stringContaining("killed") as string });
    expect([limits, waiting()]).toEqual([[], 0]);
  });
});

describe("a start that the node refuses as busy", () => {
  const refusing = (waitMs: number, times = Number.POSITIVE_INFINITY) => {
    let left = times;
    onStart = () => {
      clock += waitMs;
      return left-- > 0 ? Promise.reject(new AppError("node_busy", "no turn")) : Promise.resolve({});
    };
  };

  test("after a wait in the node's own line is asked for again for as long as its request may wait", async () => {
    const { fork } = world();
    refusing(10_000, 8);
    const deadlines: number[] = [];
    const search = fork({}, (deadline) => {
      deadlines.push(deadline);
      return Promise.resolve(true);
    });
    const before = search.deadline;
    await launched(search);
    expect(limits).toEqual(Array.from({ length: 9 }, () => 20_000));
    // Without these its record would be that of an abandoned start after the time of one placement.
    expect(deadlines).toEqual(Array.from({ length: 9 }, (_, index) => before + index * 10_000));
  });

  test("is refused as cluster_at_capacity when its request's waits and the placement's time are over", async () => {
    const { fork } = world({ startQueueMs: 30_000 });
    refusing(10_000);
    expect(await reasonOf(launched(fork()))).toEqual(BUSY);
    // Three waits within the request's limit, and six in the 55 seconds after that.
    expect(limits).toHaveLength(9);
  });
});
