/** References of snapshots in the blob store: which are recorded, how long they hold, and what a node has to upload again. */

import { expect, onTestFinished, test } from "vitest";
import { createStoredRefs } from "../../../../orchestrator/repairs/stored-refs.ts";
import { BLOB_PERIOD_MS, isRecordable } from "../../../../shared/agent-api/blobs/blob-refs.ts";
import type { Heartbeat } from "../../../../shared/agent-api/routes.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { openWorld } from "./storage-world.ts";

const log = createLog({ component: "test", level: "silent" });
const BEGIN = 1_000 * BLOB_PERIOD_MS;
const SIZE = { memoryBytes: 1, diskBytes: 2 };

/** A reference of a blob that was written in this many periods after the beginning. */
const ref = (digit: string, periods = 0) => `${digit.repeat(64)}.${1_000 + periods}`;

async function world() {
  const clock = { now: BEGIN };
  const opened = await openWorld(() => clock.now);
  onTestFinished(() => opened.opened.close());
  return { ...opened, clock, refs: opened.store.blobRefs };
}

test("references of paused sandboxes and named snapshots are recorded with their project", async () => {
  const { refs, run, pause, snapshot, project } = await world();
  await run("i1");
  const named = await snapshot("i1", SIZE, "name");
  const paused = await pause("i1", SIZE);
  const reported = [
    { snapshotId: named, ref: ref("a"), bytes: 7 },
    { snapshotId: paused, ref: ref("b"), bytes: 8 },
    { snapshotId: "of nobody", ref: ref("c"), bytes: 9 },
  ];
  expect(await refs.record(reported)).toEqual({ recorded: new Set([named, paused]), late: new Set() });
  expect(await refs.of(named)).toEqual({ snapshotId: named, ref: ref("a"), projectId: project.id, bytes: 7 });
  expect(await refs.of(paused)).toEqual({ snapshotId: paused, ref: ref("b"), projectId: project.id, bytes: 8 });
  expect(await refs.of("of nobody")).toBeUndefined();
  // Another orchestrator hears the same report.
  expect((await refs.record(reported)).recorded).toEqual(new Set([named, paused]));
  expect((await refs.sweep()).map(({ snapshotId }) => snapshotId).toSorted()).toEqual([named, paused].toSorted());
});

test("a reference holds while its sandbox starts, and is dropped by the sweep after it runs without the snapshot", async () => {
  const { refs, run, pause, store } = await world();
  await run("i1");
  const paused = await pause("i1", SIZE);
  await refs.record([{ snapshotId: paused, ref: ref("a"), bytes: 1 }]);
  await store.move({ id: "i1", to: "starting" });
  expect(await refs.sweep()).toHaveLength(1);
  await store.move({ id: "i1", to: "running", set: { snapshot: null } });
  expect(await refs.of(paused)).toMatchObject({ ref: ref("a") });
  expect(await refs.sweep()).toEqual([]);
  expect(await refs.of(paused)).toBeUndefined();
});

test("a dropped reference is not recorded again, and a newer one of the same snapshot is", async () => {
  const { refs, run, pause, store, clock } = await world();
  await run("i1");
  const paused = await pause("i1", SIZE);
  const first = { snapshotId: paused, ref: ref("a"), bytes: 1 };
  await refs.record([first]);
  await store.move({ id: "i1", to: "starting" });
  await store.move({ id: "i1", to: "running", set: { snapshot: null } });
  await refs.sweep();
  await store.move({ id: "i1", to: "pausing" });
  await store.move({ id: "i1", to: "paused", set: { snapshot: { id: paused, memory: true } } });
  expect(await refs.record([first])).toEqual({ recorded: new Set(), late: new Set([paused]) });
  clock.now += 2 * BLOB_PERIOD_MS;
  const second = { ...first, ref: ref("a", 2) };
  expect((await refs.record([second])).recorded).toEqual(new Set([paused]));
  expect(await refs.of(paused)).toMatchObject({ ref: ref("a", 2) });
});

test("a reference whose blobs may be garbage by now is not recorded, and one that was recorded in time stays", async () => {
  const { refs, run, pause, clock } = await world();
  await run("i1");
  await run("i2");
  const [early, late] = [await pause("i1", SIZE), await pause("i2", SIZE)];
  await refs.record([{ snapshotId: early, ref: ref("a"), bytes: 1 }]);
  clock.now += 3 * BLOB_PERIOD_MS;
  const reported = [early, late].map((snapshotId) => ({ snapshotId, ref: ref("a"), bytes: 1 }));
  expect(await refs.record(reported)).toEqual({ recorded: new Set([early]), late: new Set([late]) });
});

test.each([
  { periods: 0, recordable: true },
  { periods: 2, recordable: true },
  { periods: 3, recordable: false },
  // The node's clock is ahead.
  { periods: -1, recordable: true },
])(
  "$periods periods after its blobs were written a reference is recordable: $recordable",
  ({ periods, recordable }) => {
    expect(isRecordable(ref("a"), BEGIN + periods * BLOB_PERIOD_MS)).toBe(recordable);
  },
);

test("what is no reference is never recordable", () => {
  expect(isRecordable("a".repeat(64), BEGIN)).toBe(false);
});

test("a report is written down once, and again when a reference is new", async () => {
  const calls: string[][] = [];
  const refs = createStoredRefs({
    refs: {
      record(reported) {
        calls.push(reported.map((each) => `${each.snapshotId} ${each.ref}`));
        const [late, ...recorded] = reported.map(({ snapshotId }) => snapshotId).toSorted();
        return Promise.resolve(
          reported.length > 1
            ? { recorded: new Set(recorded), late: new Set([late ?? ""]) }
            : { recorded: new Set(reported.map(({ snapshotId }) => snapshotId)), late: new Set<string>() },
        );
      },
    },
    log,
  });
  const report = (...stored: readonly (readonly [id: string, ref: string])[]) => {
    const node = { nodeId: "n1" } as Heartbeat["node"];
    const snapshots = stored.map(([snapshotId, own]) => ({
      snapshotId,
      kind: "pause" as const,
      sandboxId: "s",
      executionId: "e",
      memory: true,
      memoryBytes: 1,
      diskBytes: 1,
      takenAt: 1,
      stored: { ref: own, bytes: 1 },
    }));
    return refs.heard({ node, snapshots }, new Set(["a", "b"]));
  };
  expect(await report(["a", ref("a")], ["b", ref("b")], ["unwanted", ref("c")])).toEqual(["a"]);
  // Until the node has heard that it uploads it again, it reports the same.
  expect(await report(["a", ref("a")], ["b", ref("b")])).toEqual([]);
  expect(await report(["a", ref("a")], ["b", ref("b")])).toEqual([]);
  expect(await report(["b", ref("b", 1)])).toEqual([]);
  expect(calls).toEqual([[`a ${ref("a")}`, `b ${ref("b")}`], [`a ${ref("a")}`], [`b ${ref("b", 1)}`]]);
});
