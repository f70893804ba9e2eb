/** What projects store: what counts as old and unused, sizes that nodes report later, and the operators' view. */

import { describe, expect, onTestFinished, test } from "vitest";
import { expiresAt, storedByProject } from "../../../../orchestrator/snapshots/storage-plan.ts";
import type { StoredItem } from "../../../../orchestrator/store/storage/storage.ts";
import { newUuid } from "../../../../shared/ids.ts";
import { begin, openWorld } from "./storage-world.ts";

describe("sizes that a node reports later", () => {
  test("are written once, for the paused sandboxes and snapshots of that node", async () => {
    const { opened, store, project, run, pause, snapshot } = await openWorld();
    onTestFinished(() => opened.close());
    await run("i1");
    await run("i2");
    const taken = await snapshot("i1", undefined);
    const paused = await pause("i1", undefined);
    const known = await pause("i2", { memoryBytes: 5, diskBytes: 6 });
    const reported = [paused, known, taken].map((snapshotId) => ({ snapshotId, memoryBytes: 1_000, diskBytes: 10 }));
    await store.storage.fillSizes("another node", reported);
    expect(await store.storage.projectBytes(project.id)).toBe(11);
    await store.storage.fillSizes("n1", reported);
    expect(await store.storage.projectBytes(project.id)).toBe(11 + 1_010 + 1_010);
    await store.storage.fillSizes(
      "n1",
      reported.map((each) => ({ ...each, memoryBytes: 7 })),
    );
    expect(await store.storage.projectBytes(project.id)).toBe(11 + 1_010 + 1_010);
  });
});

describe("what is old", () => {
  test("are sandboxes that were paused before a time, the oldest first", async () => {
    const { opened, store, run, pause } = await openWorld();
    onTestFinished(() => opened.close());
    for (const [id, at] of [
      ["i1", 30],
      ["i2", 10],
      ["i3", 20],
    ] as const) {
      await run(id);
      await pause(id, undefined, at);
    }
    await run("i4");
    const ids = async (before: number, limit = 10) =>
      (await store.storage.pausedBefore({ before, limit })).map(({ id }) => id);
    expect(await ids(9)).toEqual([]);
    expect(await ids(20)).toEqual(["i2", "i3"]);
    expect(await ids(30, 1)).toEqual(["i2"]);
    await store.move({ id: "i2", to: "starting" });
    expect(await ids(30)).toEqual(["i3", "i1"]);
  });

  test("are snapshots that no sandbox has used since, and each leaves one event of its source", async () => {
    let clock = 10;
    const { opened, store, project, run, snapshot } = await openWorld(() => clock);
    onTestFinished(() => opened.close());
    await run("source");
    const unused = await snapshot("source", { memoryBytes: 1, diskBytes: 1 }, "unused");
    const used = await snapshot("source", undefined);
    const usedLately = await snapshot("source", undefined);
    await run("runs", used);
    await run("ended", usedLately);
    await store.move({ id: "ended", to: "gone", set: { endedAt: 50, end: { reason: "request" } } });
    clock = 100;
    await snapshot("source", undefined);
    const expire = async (before: number) => (await store.expireSnapshots({ before, limit: 10 })).map(({ id }) => id);
    expect(await expire(9)).toEqual([]);
    expect(await expire(49)).toEqual([unused]);
    expect(await expire(49)).toEqual([]);
    expect(await store.templates.build(unused)).toBeUndefined();
    expect(await store.pausedSandboxes.wanted([unused, used])).toEqual(new Set([used]));
    expect(await expire(50)).toEqual([usedLately]);
    await store.move({ id: "runs", to: "gone", set: { endedAt: 60, end: { reason: "request" } } });
    expect(await expire(60)).toEqual([used]);
    const events = await store.events.list(project.id, { offset: 0, limit: 100, ascending: true });
    const deleted = events.filter(({ type }) => type === "sandbox.lifecycle.snapshot_deleted");
    expect(deleted.map(({ sandbox_id: id, data }) => [id, JSON.parse(data ?? "null") as unknown])).toEqual(
      [unused, usedLately, used].map((id) => ["source", { snapshot_id: id, reason: "expired" }]),
    );
  });
});

test.each([
  { how: "by its node", states: ["gone"] },
  { how: "by a kill", states: ["killing", "gone"] },
] as const)(
  "a snapshot whose orchestrator has ended is left over once its sandbox has been ended $how, and not before",
  async ({ states }) => {
    const { opened, store, project, run } = await openWorld();
    onTestFinished(() => opened.close());
    const left = async () => (await store.snapshots.leftSnapshots(1)).map(({ id }) => id);
    const template = await store.snapshots.templateFor(project.id, undefined);
    await run("source");
    const snapshotId = newUuid();
    await begin(store, { id: "source", snapshotId, kind: "snapshot", templateId: template?.id ?? "" });
    const end = { reason: "request" } as const;
    for (const to of states) {
      expect(await left()).toEqual([]);
      const set = to === states[0] ? { end } : {};
      expect((await store.move({ id: "source", to, set }))?.state).toBe(to);
    }
    expect(await left()).toEqual([snapshotId]);
  },
);

describe("the operators' view", () => {
  const item = (id: string, over: Partial<StoredItem> = {}): StoredItem => ({
    kind: "paused",
    id,
    projectId: "p",
    templateId: "t",
    nodeId: "n1",
    sandbox: { id, projectId: "p", executionId: "e", templateId: "t", buildId: "b" },
    snapshotId: "s",
    size: undefined,
    unusedSince: 0,
    inUse: false,
    ...over,
  });
  const HOUR = 3_600_000;
  const lifetimes = { pausedMs: 48 * HOUR, snapshotMs: 0 };

  test("names no end for what is in use, and for what has no lifetime", () => {
    expect(expiresAt(item("i"), lifetimes)).toBe(48 * HOUR);
    expect(expiresAt(item("i", { kind: "snapshot" }), lifetimes)).toBeUndefined();
    const both = { ...lifetimes, snapshotMs: HOUR };
    expect(expiresAt(item("i", { kind: "snapshot", unusedSince: 5 }), both)).toBe(HOUR + 5);
    expect(expiresAt(item("i", { kind: "snapshot", inUse: true }), both)).toBeUndefined();
  });

  test("lists by project what expires within a day, the soonest first, and the ten largest", () => {
    const many = Array.from({ length: 12 }, (_, index) =>
      item(`i${index}`, { unusedSince: index * HOUR, size: { memoryBytes: index, diskBytes: 1 } }),
    );
    const snapshot = item("s", { kind: "snapshot", size: { memoryBytes: 0, diskBytes: 100 } });
    const elsewhere = item("x", { projectId: "a" });
    // The first five expire within a day.
    const [first, own] = storedByProject([...many.toReversed(), snapshot, elsewhere], { lifetimes, now: 28 * HOUR });
    expect(first).toMatchObject({ projectId: "a", pausedCount: 1, snapshotCount: 0, largest: [] });
    expect(own).toMatchObject({ projectId: "p", pausedCount: 12, snapshotCount: 1 });
    expect(own?.expiringSoon.map(({ id }) => id)).toEqual(["i0", "i1", "i2", "i3", "i4"]);
    expect(own?.largest.map(({ id }) => id)).toEqual([
      "s",
      ...many
        .slice(3)
        .map(({ id }) => id)
        .toReversed(),
    ]);
  });
});

test("a snapshot whose record was deleted while it was taken is not finished, and its sandbox can go on", async () => {
  const { opened, store, run, base } = await openWorld();
  onTestFinished(() => opened.close());
  await run("i1");
  const snapshotId = newUuid();
  await begin(store, { id: "i1", snapshotId, kind: "fork", templateId: base.templateId });
  await store.giveUpSnapshot(snapshotId);
  const onward = { id: "i1", to: "running", set: { pendingSnapshot: null } } as const;
  expect(
    await store.finishSnapshot(onward, { id: snapshotId, image: "copy", memory: true }, undefined),
  ).toBeUndefined();
  expect((await store.sandboxes.get("i1"))?.state).toBe("snapshotting");
  expect((await store.giveUpSnapshot(snapshotId, onward))?.state).toBe("running");
});
