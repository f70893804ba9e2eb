/** References of snapshots in the blob store: which are recorded, how long they hold, and what a node has to upload again. */

import { expect, onTestFinished, test } from "vitest";
import { createStoredRefs } from "../../../../orchestrator/repairs/blobs/stored-refs.ts";
import { BLOB_PERIOD_MS, isRecordable } from "../../../../shared/agent-api/blobs/blob-refs.ts";
import type { Heartbeat } from "../../../../shared/agent-api/routes.ts";
import { newUuid } from "../../../../shared/ids.ts";
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
    { id: named, ref: ref("a"), bytes: 7 },
    { id: paused, ref: ref("b"), bytes: 8 },
    { id: "of nobody", ref: ref("c"), bytes: 9 },
  ];
  expect(await refs.record(reported)).toEqual({ recorded: new Set([named, paused]), late: new Set() });
  expect(await refs.of(named)).toEqual({ id: named, ref: ref("a"), projectId: project.id, bytes: 7 });
  expect(await refs.of(paused)).toEqual({ id: paused, ref: ref("b"), projectId: project.id, bytes: 8 });
  expect(await refs.of("of nobody")).toBeUndefined();
  // Another orchestrator hears the same report.
  expect((await refs.record(reported)).recorded).toEqual(new Set([named, paused]));
  expect((await refs.sweep()).map(({ id }) => id).toSorted()).toEqual([named, paused].toSorted());
});

test("a reference holds while its sandbox starts, and is dropped by the sweep after it runs without the snapshot", async () => {
  const { refs, run, pause, store } = await world();
  await run("i1");
  const paused = await pause("i1", SIZE);
  await refs.record([{ id: paused, ref: ref("a"), bytes: 1 }]);
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
  const first = { id: paused, ref: ref("a"), bytes: 1 };
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
  await refs.record([{ id: early, ref: ref("a"), bytes: 1 }]);
  clock.now += 3 * BLOB_PERIOD_MS;
  const reported = [early, late].map((id) => ({ id, ref: ref("a"), bytes: 1 }));
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

/** A template's build that is ready, and its memory. */
async function template({ store, project }: Awaited<ReturnType<typeof world>>) {
  const resources = { cpuCount: 1, memoryMB: 128, diskSizeMB: 0 };
  const name = { projectId: project.id, namespace: project.slug, name: newUuid() };
  const asked = await store.builds.request({ ...name, tags: ["default"], resources, envdVersion: "0" });
  const { id: buildId, templateId } = asked?.build ?? { id: "", templateId: "" };
  const [sealedBody, deadlineAt] = ["", Number.MAX_SAFE_INTEGER];
  await store.builds.start({
    id: buildId,
    sealedBody,
    withAccess: false,
    parentBuildId: undefined,
    diskSizeMB: 0,
    files: [],
    deadlineAt,
  });
  await store.builds.place(buildId, "n1", deadlineAt);
  const snapshot = { id: newUuid(), memory: true };
  const made = { image: "i", sealedSettings: "", user: "user", workdir: "/", envdVersion: "0", snapshot };
  expect(await store.builds.finish(buildId, made)).toBeDefined();
  return { buildId, templateId, memoryId: snapshot.id };
}

test("the image and the memory of a template are recorded with its project, hold as long as its build, and are dropped with it", async () => {
  const opened = await world();
  const { refs, store, project } = opened;
  const [kept, gone] = [await template(opened), await template(opened)];
  const ids = [kept.buildId, kept.memoryId, gone.buildId, gone.memoryId];
  const { recorded, late } = await refs.record(ids.map((id) => ({ id, ref: ref("a"), bytes: 1 })));
  expect([[...recorded].toSorted(), late]).toEqual([ids.toSorted(), new Set()]);
  expect(await refs.of(kept.buildId)).toEqual({ id: kept.buildId, ref: ref("a"), projectId: project.id, bytes: 1 });
  expect(await refs.sweep()).toHaveLength(4);
  await store.buildLeftovers.dropTemplate(gone.templateId);
  // Until the sweep of the day the blobs are vouched for, and no start is told of them.
  expect((await refs.sweep()).map(({ id }) => id).toSorted()).toEqual([kept.buildId, kept.memoryId].toSorted());
  expect(await refs.of(gone.buildId)).toBeUndefined();
  expect((await refs.record([{ id: gone.buildId, ref: ref("a"), bytes: 1 }])).recorded).toEqual(new Set());
  expect(await refs.owners([kept.buildId, gone.buildId])).toEqual(new Map([[kept.buildId, project.id]]));
});

test("a build that is under way has no reference: it may fail, and its image with it", async () => {
  const opened = await world();
  const { store, project, refs } = opened;
  const resources = { cpuCount: 1, memoryMB: 128, diskSizeMB: 0 };
  const name = { projectId: project.id, namespace: project.slug, name: "under-way" };
  const asked = await store.builds.request({ ...name, tags: ["default"], resources, envdVersion: "0" });
  const id = asked?.build.id ?? "";
  expect((await refs.record([{ id, ref: ref("a"), bytes: 1 }])).recorded).toEqual(new Set());
});

test("a report is written down once, and again when a reference is new", async () => {
  const calls: string[][] = [];
  const refs = createStoredRefs({
    refs: {
      owners: () => Promise.resolve(new Map()),
      record(reported) {
        calls.push(reported.map((each) => `${each.id} ${each.ref}`));
        const [late, ...recorded] = reported.map(({ id }) => id).toSorted();
        return Promise.resolve(
          reported.length > 1
            ? { recorded: new Set(recorded), late: new Set([late ?? ""]) }
            : { recorded: new Set(reported.map(({ id }) => id)), late: new Set<string>() },
        );
      },
    },
    known: new Map(),
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
    return refs.heard({ node, snapshots, load: {} }, new Set(["a", "b"]));
  };
  expect(await report(["a", ref("a")], ["b", ref("b")], ["unwanted", ref("c")])).toEqual(["a"]);
  // Until the node has heard that it uploads it again, it reports the same.
  expect(await report(["a", ref("a")], ["b", ref("b")])).toEqual([]);
  expect(await report(["a", ref("a")], ["b", ref("b")])).toEqual([]);
  expect(await report(["b", ref("b", 1)])).toEqual([]);
  expect(calls).toEqual([[`a ${ref("a")}`, `b ${ref("b")}`], [`a ${ref("a")}`], [`b ${ref("b", 1)}`]]);
});

test("images and memories of templates are reported with their builds, and a node learns whose a build is", async () => {
  const calls: string[][] = [];
  const refs = createStoredRefs({
    refs: {
      owners: (ids) =>
        Promise.resolve(new Map(ids.filter((id) => id !== "unknown").map((id) => [id, `owner of ${id}`]))),
      record(reported) {
        calls.push(reported.map(({ id }) => id));
        return Promise.resolve({ recorded: new Set(["image"]), late: new Set(["memory"]) });
      },
    },
    known: new Map(),
    log,
  });
  const report = {
    node: { nodeId: "n1" } as Heartbeat["node"],
    snapshots: [],
    load: {
      images: [
        {
          buildId: "image",
          stored: { ref: ref("a"), bytes: 1 },
          memory: { snapshotId: "memory", stored: { ref: ref("b"), bytes: 1 } },
        },
        { buildId: "on its way", stored: { doneBytes: 1, totalBytes: 2 } },
        { buildId: "copy" },
        { buildId: "old", ownerless: true as const },
        { buildId: "unknown", ownerless: true as const },
      ],
    },
  };
  expect(await refs.heard(report, new Set())).toEqual(["memory"]);
  expect(calls).toEqual([["image", "memory"]]);
  expect(await refs.owners(report)).toEqual({ old: "owner of old" });
  expect(await refs.owners({ ...report, load: {} })).toBeUndefined();
});
