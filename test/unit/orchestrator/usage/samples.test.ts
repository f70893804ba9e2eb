/** What projects used over time: how samples are stored, rolled up, packed, shown and deleted. */

import * as fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Heard } from "../../../../orchestrator/store/usage/counters.ts";
import { pack, unpack } from "../../../../orchestrator/store/usage/packed.ts";
import type { Used } from "../../../../orchestrator/store/usage/sample.ts";
import { STORED_STEPS, stepsFor } from "../../../../orchestrator/store/usage/steps.ts";
import type { NewSamples } from "../../../../orchestrator/store/usage/usage.ts";
import { createUsageHandlers } from "../../../../orchestrator/usage/handlers.ts";
import { toSeries } from "../../../../orchestrator/usage/series.ts";
import { openWorld } from "../store/storage-world.ts";

const HOUR = 3_600;
const DAY = 24 * HOUR;
const MIB = 1024 * 1024;
/** A multiple of every step. */
const T = 1_800_000_000;

describe("the step of an answer", () => {
  test.each([
    ["a minute", 60, 5, 5],
    ["just under an hour", HOUR - 1, 5, 5],
    ["an hour", HOUR, 30, 30],
    ["six hours", 6 * HOUR, 60, 30],
    ["twelve hours", 12 * HOUR, 120, 30],
    ["a day", DAY, 300, 300],
    ["a week", 7 * DAY, 900, 900],
    ["ninety days", 90 * DAY, 900, 900],
  ])("for %s until now is the one that is stored for its length", (_, length, step, stored) => {
    expect(stepsFor({ start: T - length, end: T }, T)).toEqual({ step, stored });
  });

  test.each([
    ["two hours ago", 2 * HOUR, 30, 30],
    ["two days ago", 2 * DAY, 300, 300],
    ["ten days ago", 10 * DAY, 900, 900],
  ])("for a short range %s is the finest that is still stored", (_, age, step, stored) => {
    expect(stepsFor({ start: T - age, end: T - age + 60 }, T)).toEqual({ step, stored });
  });
});

describe("stored samples", () => {
  const NONE = { used: new Map<string, Used>(), missed: [] };
  const USED: Used = { cpuMs: 1, sentBytes: 0, receivedBytes: 0, memoryBytes: 0, diskBytes: 0 };

  async function opened() {
    const world = await openWorld(() => T * 1000);
    onTestFinished(() => world.opened.close());
    const { usage } = world.store;
    /** One execution of each project has used that since the sample before. */
    const add = ({ used, ...step }: Omit<NewSamples, "heard"> & { readonly used: ReadonlyMap<string, Used> }) =>
      usage.add({ ...step, heard: new Map([...used].map(([id, use]) => [`e-${id}`, heardOf(id, use, step.at)])) });
    const series = async (length: number, now: number, projectId = world.project.id) => {
      const range = { start: now - length, end: now };
      const { step, stored } = stepsFor(range, now);
      return toSeries(await usage.samples(projectId, stored, range), await usage.spans(range), { ...range, step });
    };
    /** Numbers of stored samples by step. */
    const count = async () => {
      const { database } = world.opened;
      const finest = await database.selectFrom("usage_finest").select("at").execute();
      const rows = await database.selectFrom("usage_samples").select(["step", "at"]).execute();
      const blocks = await database.selectFrom("usage_blocks").selectAll().execute();
      const packed = blocks.flatMap((block) =>
        unpack(block.samples, block).map(({ at }) => ({ at, step: block.step })),
      );
      const all = [...finest.map(({ at }) => ({ at, step: 5 })), ...rows, ...packed];
      return {
        ...Object.fromEntries(
          STORED_STEPS.map(({ seconds }) => [seconds, all.filter(({ step }) => step === seconds).length]),
        ),
        packed: packed.length,
      };
    };
    return { ...world, usage, add, series, count };
  }

  test("have the running sandboxes and the starts since the sample before", async () => {
    const { store, add, run, series } = await opened();
    await run("i0");
    const before = await store.sandboxes.get("i0");
    if (before === undefined) throw new Error("no record");
    await store.addEvent(before, { type: "created" });
    await add({ ...NONE, at: T, began: T });
    await run("i1");
    for (const type of ["created", "resumed", "paused"] as const) await store.addEvent(before, { type });
    await add({ ...NONE, at: T + 5, began: T });
    // The same step once more, as a second process would after a crash.
    await add({ ...NONE, at: T + 5, began: T });
    expect(await series(60, T + 30)).toMatchObject([
      { at: T, sandboxes: 1, starts: 0 },
      { at: T + 5, sandboxes: 2, starts: 2 },
    ]);
  });

  test("have the use of each project, once, and the counters that it was counted from", async () => {
    const { opened: database, project, other, usage, add, series } = await opened();
    const use = { cpuMs: 1_000, sentBytes: 7, receivedBytes: 3, memoryBytes: 5 * MIB, diskBytes: 2 ** 40 };
    const added = await add({ ...NONE, at: T, began: T, used: new Map([[project.id, use]]) });
    expect(added).toEqual([{ publicId: project.publicId, sample: { ...use, sandboxes: 0, starts: 0 } }]);
    const counters = () => database.database.selectFrom("usage_counters").select(["execution_id", "cpu_ms"]).execute();
    expect(await counters()).toEqual([{ execution_id: `e-${project.id}`, cpu_ms: 1_000 }]);
    await add({ ...NONE, at: T + 5, began: T, used: new Map([["of nobody", use]]) });
    expect(await series(10, T + 10)).toMatchObject([
      { at: T, ...use },
      { at: T + 5, cpuMs: 0, memoryBytes: use.memoryBytes },
    ]);
    expect(await series(10, T + 10, other.id)).toMatchObject([{ cpuMs: 0 }, { cpuMs: 0 }]);
    // Nothing was heard for half a minute: nothing is in use.
    await usage.add({ at: T + 40, began: T, missed: [], heard: new Map() });
    expect(await series(5, T + 45)).toMatchObject([{ at: T + 40, memoryBytes: 0, diskBytes: 0 }]);
  });

  test("are rolled up once into every longer step, over a restart and a gap, and an answer of any step has the newest ones", async () => {
    const { project, add, series } = await opened();
    const step = (at: number, began: number, memoryBytes: number) =>
      add({
        ...NONE,
        at,
        began,
        used: new Map([[project.id, { cpuMs: 10, sentBytes: 1, receivedBytes: 2, memoryBytes, diskBytes: 0 }]]),
      });
    for (let at = T; at < T + 1_000; at += 5) await step(at, T, at - T);
    // The platform does not run for a quarter of an hour.
    const again = T + 1_900;
    for (let at = again; at < again + 100; at += 5) await step(at, again, 1);
    const now = again + 100;
    const sum = (points: readonly { readonly cpuMs: number }[]) => points.reduce((all, { cpuMs }) => all + cpuMs, 0);
    for (const length of [2_000, HOUR, 6 * HOUR, 12 * HOUR, DAY, 30 * DAY]) {
      const points = await series(length, now);
      expect(sum(points), `${length} s`).toBe(2_200);
      expect(Math.max(...points.map(({ memoryBytes }) => memoryBytes)), `${length} s`).toBe(995);
    }
    expect((await series(HOUR, now)).some(({ at }) => at > T + 1_000 && at < again - 30)).toBe(false);
    expect((await series(30 * DAY, now)).map(({ at }) => at - T)).toEqual([0, 900, 1_800]);
  });

  test("are packed, and deleted when they are old, a project at a time, so that their number has a limit", async () => {
    const { project, usage, add, count } = await opened();
    const used = new Map([[project.id, USED]]);
    for (let at = T; at < T + 900; at += 5) await add({ ...NONE, at, began: T, used });
    expect(await count()).toEqual({ 5: 180, 30: 29, 300: 2, 900: 0, packed: 0 });
    const later = async (at: number) => {
      // One round deletes the samples of one project and a minute of the finest; the next ones begin again.
      for (let round = 0; round < 20; round++) await add({ ...NONE, at: at + round * 5, began: at - 600 });
      return count();
    };
    expect(await later(T + 2 * HOUR)).toEqual({ 5: 0, 30: 30, 300: 3, 900: 1, packed: 30 });
    expect(await later(T + DAY)).toEqual({ 5: 0, 30: 30, 300: 3, 900: 1, packed: 33 });
    expect(await later(T + DAY + 3 * HOUR)).toEqual({ 5: 0, 30: 0, 300: 3, 900: 1, packed: 3 });
    expect(await later(T + 4 * DAY)).toEqual({ 5: 0, 30: 0, 300: 3, 900: 1, packed: 4 });
    expect(await later(T + 9 * DAY)).toEqual({ 5: 0, 30: 0, 300: 0, 900: 1, packed: 1 });
    expect(await later(T + 95 * DAY)).toEqual({ 5: 0, 30: 0, 300: 0, 900: 0, packed: 0 });
    expect(await usage.spans({ start: 0, end: T + DAY })).toEqual([]);
  });

  test("are deleted by no process that has just started: its clock may be wrong", async () => {
    const { project, add, series, count } = await opened();
    for (const at of [T, T + 5]) await add({ ...NONE, at, began: T, used: new Map([[project.id, USED]]) });
    const wrong = T + 1_000 * DAY;
    for (const at of [wrong, wrong + 5, wrong + 10]) await add({ ...NONE, at, began: wrong });
    expect(await count()).toMatchObject({ 5: 2, 30: 1 });
    expect((await series(60, T + 10)).map(({ cpuMs }) => cpuMs)).toEqual([1, 1]);
  });

  test("are in answers of every step after a clock that was ahead is set back, before and after they are packed", async () => {
    const { project, add, series, count } = await opened();
    const used = new Map([[project.id, USED]]);
    const minute = async (from: number, began = from) => {
      for (let at = from; at < from + 60; at += 5) await add({ ...NONE, at, began, used });
    };
    await minute(T);
    await minute(T + 10 * DAY);
    // Two samples more, which a busy process missed, have what is in use and count nothing.
    await minute(T + 60);
    await add({ ...NONE, at: T + 130, missed: [T + 120, T + 125], began: T + 60, used });
    const now = T + 135;
    for (const length of [HOUR - 1, HOUR, 12 * HOUR, DAY, 30 * DAY]) {
      const points = await series(length, now);
      expect(
        points.reduce((all, { cpuMs }) => all + cpuMs, 0),
        `${length} s`,
      ).toBe(25);
    }
    // The clock has come to where it was ahead.
    const again = T + 10 * DAY + HOUR;
    for (let round = 0; round < 3; round++) await add({ ...NONE, at: again + round * 5, began: T });
    expect(await count()).toMatchObject({ 900: 2, packed: 1 });
    // It is set back once more, into a block that is packed.
    await minute(T + 200);
    expect((await series(30 * DAY, T + 300)).map(({ cpuMs }) => cpuMs)).toEqual([37]);
    for (let round = 0; round < 3; round++) await add({ ...NONE, at: again + 900 + round * 5, began: T });
    expect(await count()).toMatchObject({ 900: 2, packed: 1 });
    expect((await series(30 * DAY, T + 300)).map(({ cpuMs }) => cpuMs)).toEqual([37]);
  });

  test("of a step keep the end of their time when a process begins again within it", async () => {
    const { usage, add } = await opened();
    await add({ ...NONE, at: T + 100, began: T });
    await add({ ...NONE, at: T, began: T });
    expect(await usage.spans({ start: T, end: T + 200 })).toEqual([{ began: T, until: T + 105 }]);
  });

  test("go with their project, and a new project has none of them", async () => {
    const { opened: database, store, project, add, series, count } = await opened();
    const gone = await store.projects.create("gone");
    const used = new Map([[gone.id, USED]]);
    for (let at = T; at < T + 3 * HOUR; at += 900) await add({ ...NONE, at, began: T - HOUR, used });
    expect(await count()).toMatchObject({ 30: 11, packed: expect.any(Number) as number });
    await add({ ...NONE, at: T + 3 * HOUR, began: T, used });
    await database.database.deleteFrom("projects").where("id", "=", gone.id).execute();
    expect(await count()).toMatchObject({ 30: 0, 300: 0, 900: 0, packed: 0 });
    const next = await store.projects.create("next");
    // The finest samples of the deleted project are still there when the next step is rolled up.
    await add({
      ...NONE,
      at: T + 3 * HOUR + 30,
      began: T,
      used: new Map([
        [next.id, USED],
        [gone.id, USED],
      ]),
    });
    for (const { id, cpuMs } of [
      { ...next, cpuMs: 1 },
      { ...project, cpuMs: 0 },
      { ...gone, cpuMs: 0 },
    ]) {
      const points = await series(HOUR - 1, T + 3 * HOUR + 35, id);
      expect(points.reduce((all, point) => all + point.cpuMs, 0)).toBe(cpuMs);
    }
  });

  test("are all in the first step of an answer, which begins before the range does", async () => {
    const { project, usage, add } = await opened();
    for (let at = T; at < T + 120; at += 5) {
      await add({ ...NONE, at, began: T, used: new Map([[project.id, { ...USED, sentBytes: 10 }]]) });
    }
    const now = T + 13 * HOUR;
    await add({ ...NONE, at: now, began: T });
    const { teamMetrics } = createUsageHandlers({ store: usage, now: () => now * 1000 });
    const input = { params: { teamID: project.id }, query: { start: T + 110, end: now }, body: undefined };
    const points = await teamMetrics(input, { caller: project } as Parameters<typeof teamMetrics>[1]);
    // Steps of two minutes.
    expect(points[0]).toMatchObject({ timestampUnix: T, bytesSent: 240 });
  });

  test("count an execution that no node reports for as long as its sandbox runs", async () => {
    const { opened: database, store, project, usage, run } = await opened();
    await run("i0");
    const record = await store.sandboxes.get("i0");
    if (record === undefined) throw new Error("no record");
    const heard = new Map([record.executionId, "e-over"].map((id) => [id, heardOf(project.id, USED, T)]));
    await usage.add({ at: T, began: T, missed: [], heard });
    await usage.add({ at: T + 55, began: T, missed: [], heard: new Map() });
    const known = async () => {
      const rows = await database.database.selectFrom("usage_counters").select("execution_id").execute();
      return rows.map(({ execution_id: id }) => id).sort();
    };
    expect(await known()).toEqual([...heard.keys()].sort());
    await usage.add({ at: T + 65, began: T, missed: [], heard: new Map() });
    expect(await known()).toEqual([record.executionId]);
  });
});

function heardOf(projectId: string, { memoryBytes, diskBytes, ...grown }: Used, at: number): Heard {
  // The same process has told the database of all that it has heard before.
  const told = { since: Number.MAX_SAFE_INTEGER };
  return { projectId, memoryBytes, diskBytes, grown, counted: grown, at: at * 1000, ...told };
}

describe("packed samples", () => {
  const sample = fc.record({
    sandboxes: fc.nat(10_000),
    starts: fc.nat(10_000),
    cpu_ms: fc.nat(2 ** 31 + 5),
    memory_bytes: fc.maxSafeNat().map((bytes) => Math.floor(bytes / 4)),
    disk_bytes: fc.nat(),
    sent_bytes: fc.maxSafeNat(),
    received_bytes: fc.maxSafeNat(),
  });

  test("are the same after they are unpacked", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(9), sample), { maxLength: 40 }), (all) => {
        let at = T;
        const samples = all.map(([skipped, values], index) => {
          at += (skipped + Math.min(index, 1)) * 900;
          return { at, ...values };
        });
        expect(unpack(pack(samples, { at: T, step: 900 }), { at: T, step: 900 })).toEqual(samples);
      }),
    );
  });

  test("of an unknown version, or cut off, are refused", () => {
    const values = { sandboxes: 1, starts: 0, cpu_ms: 300, memory_bytes: 0, disk_bytes: 0, sent_bytes: 0 };
    const bytes = pack([{ at: T, ...values, received_bytes: 1_000 }], { at: T, step: 30 });
    expect(() => unpack(bytes.subarray(0, -1), { at: T, step: 30 })).toThrow("end within a number");
    expect(() => unpack(Buffer.from([9]), { at: T, step: 30 })).toThrow("unknown version 9");
  });
});
