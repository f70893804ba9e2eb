import { describe, expect, test } from "vitest";
import { noSuspicions, reconcile, type Suspicions } from "../../../orchestrator/reconcile.ts";
import type { SandboxRecord } from "../../../orchestrator/store/sandbox-record.ts";
import type { LiveExecution } from "../../../shared/agent-api.ts";

const grace = { orphanMs: 60_000, missingMs: 10_000 };

function record(over: Partial<SandboxRecord> = {}): SandboxRecord {
  return {
    id: "i1",
    projectId: "p",
    state: "running",
    executionId: "e1",
    nodeId: "n1",
    address: "10.0.0.2",
    templateId: "t",
    buildId: "b",
    alias: undefined,
    cpuCount: 1,
    memoryMB: 128,
    diskSizeMB: 0,
    envdVersion: "0.6.13",
    metadata: {},
    network: undefined,
    internet: undefined,
    onTimeout: "kill",
    onTimeoutMemory: true,
    onResume: "restore",
    autoResume: false,
    timeoutSeconds: 300,
    createdAt: 0,
    startedAt: 0,
    endAt: 300_000,
    endedAt: undefined,
    endReason: undefined,
    snapshot: undefined,
    capture: undefined,
    resumption: undefined,
    ...over,
  };
}

function execution(over: Partial<LiveExecution> = {}): LiveExecution {
  return { executionId: "e1", sandboxId: "i1", address: "10.0.0.2", startedAt: 0, endAt: 300_000, ...over };
}

function plan(reported: LiveExecution[], records: SandboxRecord[], before: Suspicions = noSuspicions, now = 1_000_000) {
  return reconcile({ nodeId: "n1", reported, snapshots: [], wanted: new Set(), records }, before, grace, now);
}

test("what agrees needs nothing", () => {
  expect(plan([execution()], [record()])).toEqual({
    stop: [],
    lost: [],
    asleep: [],
    deleteSnapshots: [],
    endAt: {},
    suspicions: noSuspicions,
  });
});

describe("on the node, not in the records", () => {
  test("is left alone for its grace, then stopped", () => {
    const first = plan([execution()], [], noSuspicions, 0);
    expect(first.stop).toEqual([]);
    expect(plan([execution()], [], first.suspicions, 59_999).stop).toEqual([]);
    expect(plan([execution()], [], first.suspicions, 60_000).stop).toEqual(["e1"]);
  });

  test("is forgotten when its record turns up", () => {
    const first = plan([execution()], [], noSuspicions, 0);
    const second = plan([execution()], [record()], first.suspicions, 30_000);
    expect(second.suspicions.orphans.size).toBe(0);
  });

  test.each<[string, SandboxRecord]>([
    ["gone", record({ state: "gone" })],
    ["being killed", record({ state: "killing" })],
    ["another execution", record({ executionId: "e2" })],
    ["another node", record({ nodeId: "n2" })],
  ])("is stopped at once when the record says: %s", (_name, known) => {
    expect(plan([execution()], [known]).stop).toEqual(["e1"]);
  });

  test("is left alone while it is starting", () => {
    expect(plan([execution()], [record({ state: "starting" })]).stop).toEqual([]);
  });
});

describe("in the records, not on the node", () => {
  test("is lost after its grace", () => {
    const first = plan([], [record()], noSuspicions, 0);
    expect(first.lost).toEqual([]);
    expect(plan([], [record()], first.suspicions, 9_999).lost).toEqual([]);
    expect(plan([], [record()], first.suspicions, 10_000).lost).toEqual([record()]);
  });

  test("is not lost when it was reported in between", () => {
    const first = plan([], [record()], noSuspicions, 0);
    const second = plan([execution()], [record()], first.suspicions, 5_000);
    expect(plan([], [record()], second.suspicions, 12_000).lost).toEqual([]);
  });

  test.each(["starting", "killing", "paused"] as const)("%s has its own deadline", (state) => {
    const first = plan([], [record({ state })], noSuspicions, 0);
    expect(plan([], [record({ state })], first.suspicions, 1_000_000).lost).toEqual([]);
  });

  test("another node's is none of this report's business", () => {
    const before = { ...noSuspicions, missing: new Map([["e1", 0]]) };
    expect(plan([], [record({ nodeId: "n2" })], before).lost).toEqual([]);
  });
});

test("an end the node has wrong is corrected, a second is not worth it", () => {
  expect(plan([execution({ endAt: 200_000 })], [record()]).endAt).toEqual({ e1: 300_000 });
  expect(plan([execution({ endAt: 299_500 })], [record()]).endAt).toEqual({});
});
