/** Records of ended sandboxes are deleted after their time, in batches, and kept where a snapshot's lifetime needs them. */

import { expect, onTestFinished, test } from "vitest";
import { createForgetting } from "../../../../orchestrator/repairs/forgetting.ts";
import { createStore } from "../../../../orchestrator/store/store.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { openTestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });
const HOUR_MS = 3_600_000;
const NOW = 1_000 * HOUR_MS;

interface Counted {
  readonly forgotten: { before: number; usesBefore: number; limit: number }[];
  readonly events: number[];
}

/** A store that has `left` records to delete. */
function counted(left: number) {
  const seen: Counted = { forgotten: [], events: [] };
  const rest = { left };
  const store = {
    sandboxes: {
      forget(old: Counted["forgotten"][number]) {
        seen.forgotten.push(old);
        const deleted = Math.min(rest.left, old.limit);
        rest.left -= deleted;
        return Promise.resolve(deleted);
      },
    },
    events: {
      forget(before: number) {
        seen.events.push(before);
        return Promise.resolve();
      },
    },
    nodeEvents: { forget: () => Promise.resolve() },
  };
  const clock = { now: NOW };
  const hours = { ended: 24, history: 720 };
  const forget = (over: Partial<typeof hours> = {}) => {
    const { ended, history } = { ...hours, ...over };
    const times = { endedMs: ended * HOUR_MS, historyMs: history * HOUR_MS, now: () => clock.now };
    return createForgetting({ store, ...times, log });
  };
  return { forget, seen, rest, clock };
}

test("a round deletes a bounded number of records, and the next one continues at once", async () => {
  const { forget, seen, rest } = counted(25_000);
  const round = forget();
  await round();
  const inOne = 25_000 - rest.left;
  expect(inOne).toBe(10_000);
  expect(Math.max(...seen.forgotten.map(({ limit }) => limit))).toBe(500);
  await round();
  await round();
  expect(rest.left).toBe(0);
});

test("after everything is deleted the next round comes ten minutes later", async () => {
  const { forget, seen, clock } = counted(3);
  const round = forget();
  await round();
  await round();
  expect([seen.forgotten.length, seen.events.length]).toEqual([1, 1]);
  clock.now += 600_000;
  await round();
  expect([seen.forgotten.length, seen.events.length]).toEqual([2, 2]);
});

test.each([
  [24, 720, 24, 720],
  // A node may still report an execution of it.
  [0, 720, 1, 720],
  // Readable for longer than events are kept.
  [1000, 24, 1000, 1000],
])(
  "with %i hours of history and %i of events, records go after %i hours and those of snapshots after %i",
  async (ended, history, before, uses) => {
    const { forget, seen } = counted(0);
    await forget({ ended, history })();
    expect(seen.forgotten).toEqual([{ before: NOW - before * HOUR_MS, usesBefore: NOW - uses * HOUR_MS, limit: 500 }]);
    expect(seen.events).toEqual([NOW - history * HOUR_MS]);
  },
);

test("the oldest ended sandboxes are deleted first, and neither live ones nor users of a snapshot", async () => {
  const opened = await openTestDatabase();
  onTestFinished(() => opened.close());
  const store = createStore(opened.database, () => 1, testSeal);
  const facts = { cpuCount: 1, memoryMB: 128, diskSizeMB: 0, envdVersion: "0" };
  const base = await store.templates.seed("base", { image: "base", ...facts });
  const source = newSandbox({ id: "source", templateId: base.templateId, buildId: base.id });
  await store.sandboxes.add(source, { sandboxes: 100 });
  const snapshot = { id: "0b2f1d43-0000-4000-8000-000000000001", memory: true, kind: "snapshot" } as const;
  await store.move({ id: "source", to: "running" });
  const running = await store.sandboxes.get("source");
  if (running === undefined) throw new Error("no source");
  await store.beginSnapshot(
    { id: "source", to: "snapshotting" },
    {
      ...snapshot,
      templateId: base.templateId,
      source: running,
      image: "",
      defaultUser: undefined,
      defaultWorkdir: undefined,
      sealedSettings: undefined,
    },
  );
  for (const [id, endedAt, buildId] of [
    ["a", 10, base.id],
    ["b", 20, base.id],
    ["c", 30, snapshot.id],
    ["d", 40, base.id],
    ["e", 60, base.id],
  ] as const) {
    const metadata = { name: id };
    await store.sandboxes.add(newSandbox({ id, templateId: base.templateId, buildId, metadata }), { sandboxes: 100 });
    await store.move({ id, to: "gone", set: { endedAt, end: { reason: "request" } } });
  }
  const left = async () =>
    (await opened.database.selectFrom("sandboxes").select("id").orderBy("id").execute()).map(({ id }) => id);
  expect(await store.sandboxes.forget({ before: 50, usesBefore: 0, limit: 2 })).toBe(2);
  expect(await left()).toEqual(["c", "d", "e", "source"]);
  expect(await store.sandboxes.forget({ before: 50, usesBefore: 30, limit: 10 })).toBe(1);
  expect(await left()).toEqual(["c", "e", "source"]);
  expect(await store.sandboxes.forget({ before: 50, usesBefore: 31, limit: 10 })).toBe(1);
  expect(await left()).toEqual(["e", "source"]);
  const names = await opened.database.selectFrom("sandbox_metadata").select("sandbox_id").execute();
  expect(names.map(({ sandbox_id: id }) => id)).toEqual(["e"]);
});
