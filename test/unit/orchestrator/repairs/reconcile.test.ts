import { describe, expect, test } from "vitest";
import { noSuspicions, reconcile, type Suspicions } from "../../../../orchestrator/repairs/reconcile.ts";
import type { SandboxRecord } from "../../../../orchestrator/store/sandboxes/record.ts";
import type { LiveExecution, StoredSnapshot } from "../../../../shared/agent-api/routes.ts";
import type { EndReason } from "../../../../shared/states/end-reason.ts";
import { sandboxRecord } from "../../../support/store/sandbox-records.ts";

const grace = { orphanMs: 60_000, missingMs: 10_000 };

function record(over: Partial<SandboxRecord> = {}): SandboxRecord {
  return sandboxRecord({ createdAt: 0, startedAt: 0, endAt: 300_000, ...over });
}

function execution(over: Partial<LiveExecution> = {}): LiveExecution {
  return { executionId: "e1", sandboxId: "i1", address: "10.0.0.2", startedAt: 0, endAt: 300_000, ...over };
}

function plan(reported: LiveExecution[], records: SandboxRecord[], before: Suspicions = noSuspicions, now = 1_000_000) {
  return reconcile({ nodeId: "n1", reported, snapshots: [], wanted: new Set(), records }, before, grace, now);
}

test("a node that agrees with the records needs no repair", () => {
  expect(plan([execution()], [record()])).toEqual({
    stop: [],
    hold: [],
    lost: [],
    pausedByNode: [],
    deleteSnapshots: [],
    removeSnapshots: [],
    endAt: {},
    suspicions: noSuspicions,
  });
});

describe("on the node, not in the records", () => {
  test("is left alone for its grace, then held", () => {
    const first = plan([execution()], [], noSuspicions, 0);
    expect(first.hold).toEqual([]);
    expect(plan([execution()], [], first.suspicions, 59_999).hold).toEqual([]);
    expect(plan([execution()], [], first.suspicions, 60_000)).toMatchObject({
      hold: [{ executionId: "e1" }],
      stop: [],
    });
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

  test("of another node is not judged by this report", () => {
    const before = { ...noSuspicions, missing: new Map([["e1", 0]]) };
    expect(plan([], [record({ nodeId: "n2" })], before).lost).toEqual([]);
  });
});

describe("snapshots on the node", () => {
  const stored = (over: Partial<StoredSnapshot> = {}): StoredSnapshot => ({
    snapshotId: "s1",
    kind: "pause",
    sandboxId: "i1",
    executionId: "e1",
    memory: true,
    memoryBytes: 1,
    diskBytes: 1,
    takenAt: 0,
    ...over,
  });
  const judge = (
    sides: Partial<Parameters<typeof reconcile>[0]>,
    now = 1_000_000,
    before: Suspicions = noSuspicions,
  ) => {
    const given = { nodeId: "n1", reported: [], snapshots: [stored()], wanted: new Set<string>(), records: [] };
    return reconcile({ ...given, ...sides }, before, grace, now);
  };

  test("that are wanted are left alone", () => {
    const plan = judge({ wanted: new Set(["s1"]) });
    expect([plan.deleteSnapshots, plan.pausedByNode, plan.suspicions.strays.size]).toEqual([[], [], 0]);
  });

  test("that are not needed are removed after their grace period, and not before", () => {
    const first = judge({}, 0);
    expect(first.deleteSnapshots).toEqual([]);
    expect(judge({}, 59_999, first.suspicions).deleteSnapshots).toEqual([]);
    expect(judge({}, 60_000, first.suspicions).deleteSnapshots).toMatchObject([{ snapshotId: "s1" }]);
    expect(judge({ wanted: new Set(["s1"]) }, 60_000, first.suspicions).suspicions.strays.size).toBe(0);
  });

  test("of an execution that should run and does not mean that its node paused it, not that it is lost", () => {
    const running = record();
    const first = judge({ records: [running] }, 0);
    expect(first.pausedByNode).toEqual([{ record: running, stored: stored() }]);
    const later = judge({ records: [running] }, 1_000_000, first.suspicions);
    expect([later.lost, later.deleteSnapshots]).toEqual([[], []]);
  });

  test.each<[string, Partial<StoredSnapshot>, Partial<SandboxRecord>]>([
    ["a checkpoint", { kind: "checkpoint" }, {}],
    ["another execution's", { executionId: "e0" }, {}],
    ["a record of another node", {}, { nodeId: "n2" }],
    ["a sandbox that is over", {}, { state: "gone" }],
    ["a sandbox that is being killed", {}, { state: "killing" }],
  ])("are not taken for a pause by the node, and are removed after their grace period: %s", (_what, of, over) => {
    const sides = { snapshots: [stored(of)], records: [record(over)] };
    const first = judge(sides, 0);
    expect(first.pausedByNode).toEqual([]);
    expect(judge(sides, 60_000, first.suspicions).deleteSnapshots).toMatchObject([{ snapshotId: "s1" }]);
  });

  test.each<[string, EndReason, "pause" | "checkpoint", "held" | "deleted"]>([
    ["a request killed", "request", "pause", "deleted"],
    ["an operator killed", "admin", "pause", "deleted"],
    ["whose timeout passed", "timeout", "pause", "deleted"],
    ["paused for too long", "expired", "pause", "deleted"],
    ["that a request killed, of which a copy was made", "request", "checkpoint", "held"],
    ["of a lost node", "node_lost", "pause", "held"],
    ["that its node lost", "lost", "pause", "held"],
    ["whose container was removed", "removed", "pause", "held"],
  ])("of a sandbox %s (%s, %s) are %s after their grace period", (_what, reason, kind, end) => {
    const sides = { snapshots: [stored({ kind })], records: [record({ state: "gone", end: { reason } })] };
    const first = judge(sides, 0);
    expect([first.deleteSnapshots, first.removeSnapshots]).toEqual([[], []]);
    const { deleteSnapshots, removeSnapshots } = judge(sides, 60_000, first.suspicions);
    expect([deleteSnapshots.length, removeSnapshots.length]).toEqual(end === "held" ? [1, 0] : [0, 1]);
  });

  test("of a sandbox that a request is killing are left to the kill, and deleted when it has ended without them", () => {
    const end = { reason: "request" as const };
    const of = (state: "killing" | "gone") => ({ snapshots: [stored()], records: [record({ state, end })] });
    const first = judge(of("killing"), 0);
    const during = judge(of("killing"), 60_000, first.suspicions);
    expect([during.deleteSnapshots, during.removeSnapshots]).toEqual([[], []]);
    const ended = judge(of("gone"), 60_001, during.suspicions);
    expect([ended.deleteSnapshots, ended.removeSnapshots]).toEqual([[], [stored()]]);
  });

  test("left by a pause that failed are removed although the sandbox runs", () => {
    const sides = { reported: [execution()], records: [record()] };
    const first = judge(sides, 0);
    expect(first.pausedByNode).toEqual([]);
    expect(judge(sides, 60_000, first.suspicions).deleteSnapshots).toMatchObject([{ snapshotId: "s1" }]);
  });

  test.each(["starting", "pausing", "paused", "snapshotting", "rewinding"] as const)(
    "of a record that is %s are never removed, because they may be all that is left of the sandbox",
    (state) => {
      const first = judge({ records: [record({ state })] }, 0);
      expect(judge({ records: [record({ state })] }, 9_000_000, first.suspicions).deleteSnapshots).toEqual([]);
    },
  );
});

test("a wrong end on the node is corrected, unless it differs by less than a second", () => {
  expect(plan([execution({ endAt: 200_000 })], [record()]).endAt).toEqual({ e1: 300_000 });
  expect(plan([execution({ endAt: 299_500 })], [record()]).endAt).toEqual({});
});
