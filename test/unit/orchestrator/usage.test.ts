/** What projects use over time: how samples are counted, rolled up, shown and deleted. */

import { describe, expect, onTestFinished, test } from "vitest";
import { STORED_STEPS, stepsFor } from "../../../orchestrator/store/usage/steps.ts";
import type { NewSamples, ProjectSample } from "../../../orchestrator/store/usage/usage.ts";
import { createMeter, type Pending } from "../../../orchestrator/usage/meter.ts";
import { createSampling } from "../../../orchestrator/usage/sampling.ts";
import { toSeries } from "../../../orchestrator/usage/series.ts";
import type { LiveExecution } from "../../../shared/agent-api/routes.ts";
import { openWorld } from "./storage-world.ts";

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
  ])("for %s until now", (_, length, step, stored) => {
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

function execution(id: string, use?: Partial<LiveExecution["use"]>): LiveExecution {
  const zero = { cpuMs: 0, sentBytes: 0, receivedBytes: 0, memoryBytes: 0, diskBytes: 0 };
  const live = { executionId: `e-${id}`, sandboxId: id, address: "10.0.0.2", startedAt: 0, endAt: 0 };
  return use === undefined ? live : { ...live, use: { ...zero, ...use } };
}

const owner = (id: string, projectId: string) => ({ id, executionId: `e-${id}`, projectId });

describe("the meter", () => {
  async function pending(meter: ReturnType<typeof createMeter>): Promise<Pending> {
    let taken: Pending | undefined;
    await meter.flush((all) => {
      taken = all;
      return Promise.resolve();
    });
    if (taken === undefined) throw new Error("nothing was flushed");
    return taken;
  }

  test("adds up what counters have grown by, and what is in use, by project", async () => {
    const meter = createMeter(new Map([["e-a", { cpuMs: 100, sentBytes: 10, receivedBytes: 1 }]]), () => 0);
    const owners = [owner("a", "p1"), owner("b", "p1"), owner("c", "p2")];
    meter.heard(
      [
        execution("a", { cpuMs: 150, sentBytes: 10, receivedBytes: 3, memoryBytes: 5, diskBytes: 7 }),
        execution("b", { cpuMs: 20, memoryBytes: 1, diskBytes: 2 }),
        execution("c", { sentBytes: 9 }),
        execution("not measured"),
        execution("of nobody", { cpuMs: 1_000 }),
      ],
      owners,
    );
    const first = await pending(meter);
    expect(Object.fromEntries(first.used)).toEqual({
      p1: { cpuMs: 70, sentBytes: 0, receivedBytes: 2, memoryBytes: 6, diskBytes: 9 },
      p2: { cpuMs: 0, sentBytes: 9, receivedBytes: 0, memoryBytes: 0, diskBytes: 0 },
    });
    expect(first.counters.get("e-a")).toEqual({ cpuMs: 150, sentBytes: 10, receivedBytes: 3 });
    // Nothing new: what is in use stays, what was counted is not counted again.
    expect((await pending(meter)).used.get("p1")).toMatchObject({ cpuMs: 0, memoryBytes: 6 });
  });

  test("takes a counter that has become smaller for one that began again", async () => {
    const meter = createMeter(new Map(), () => 0);
    for (const cpuMs of [500, 40]) meter.heard([execution("a", { cpuMs })], [owner("a", "p")]);
    expect((await pending(meter)).used.get("p")?.cpuMs).toBe(540);
  });

  test("forgets nothing when the samples could not be stored", async () => {
    const meter = createMeter(new Map(), () => 0);
    meter.heard([execution("a", { cpuMs: 30 })], [owner("a", "p")]);
    await expect(meter.flush(() => Promise.reject(new Error("disk full")))).rejects.toThrow("disk full");
    meter.heard([execution("a", { cpuMs: 35 })], [owner("a", "p")]);
    const { used, counters } = await pending(meter);
    expect([used.get("p")?.cpuMs, counters.get("e-a")?.cpuMs]).toEqual([35, 35]);
  });

  test("stops counting an execution that no report mentions any more", async () => {
    const clock = { now: 0 };
    const meter = createMeter(new Map(), () => clock.now);
    meter.heard([execution("a", { memoryBytes: 8 })], [owner("a", "p")]);
    expect((await pending(meter)).ended).toEqual([]);
    clock.now = 61_000;
    const last = await pending(meter);
    expect([last.ended, [...last.used]]).toEqual([["e-a"], []]);
    expect((await pending(meter)).ended).toEqual([]);
  });
});

describe("stored samples", () => {
  const NONE: Pick<NewSamples, "used" | "counters" | "ended" | "missed"> = {
    used: new Map(),
    counters: new Map(),
    ended: [],
    missed: [],
  };

  async function opened() {
    const world = await openWorld(() => T * 1000);
    onTestFinished(() => world.opened.close());
    const { usage } = world.store;
    const series = async (length: number, now: number, projectId = world.project.id) => {
      const range = { start: now - length, end: now };
      const { step, stored } = stepsFor(range, now);
      return toSeries(await usage.samples(projectId, stored, range), await usage.spans(range), { ...range, step });
    };
    return { ...world, usage, series };
  }

  test("have the running sandboxes and the starts since the sample before", async () => {
    const { store, usage, run, series } = await opened();
    await run("i0");
    const before = await store.sandboxes.get("i0");
    if (before === undefined) throw new Error("no record");
    await store.addEvent(before, { type: "created" });
    await usage.add({ ...NONE, at: T, began: T });
    await run("i1");
    for (const type of ["created", "resumed", "paused"] as const) await store.addEvent(before, { type });
    await usage.add({ ...NONE, at: T + 5, began: T });
    // The same step once more, as a second process would after a crash.
    await usage.add({ ...NONE, at: T + 5, began: T });
    expect(await series(60, T + 30)).toMatchObject([
      { at: T, sandboxes: 1, starts: 0 },
      { at: T + 5, sandboxes: 2, starts: 2 },
    ]);
  });

  test("have the use of each project, once, and the counters that it was counted from", async () => {
    const { project, other, usage, series } = await opened();
    const use = { cpuMs: 1_000, sentBytes: 7, receivedBytes: 3, memoryBytes: 5 * MIB, diskBytes: 2 ** 40 };
    const counters = new Map([["e1", { cpuMs: 4, sentBytes: 2, receivedBytes: 1 }]]);
    const added = await usage.add({ ...NONE, at: T, began: T, used: new Map([[project.id, use]]), counters });
    expect(added).toEqual([{ publicId: project.publicId, sample: { ...use, sandboxes: 0, starts: 0 } }]);
    expect(await usage.counters()).toEqual(counters);
    await usage.add({ ...NONE, at: T + 5, began: T, ended: ["e1"], used: new Map([["of nobody", use]]) });
    expect(await usage.counters()).toEqual(new Map());
    expect(await series(10, T + 10)).toMatchObject([
      { at: T, ...use },
      { at: T + 5, cpuMs: 0 },
    ]);
    expect(await series(10, T + 10, other.id)).toMatchObject([{ cpuMs: 0 }, { cpuMs: 0 }]);
  });

  test("are rolled up once into every longer step, over a restart and a gap, and an answer of any step has the newest ones", async () => {
    const { project, usage, series } = await opened();
    const add = (at: number, began: number, memoryBytes: number) =>
      usage.add({
        ...NONE,
        at,
        began,
        used: new Map([[project.id, { cpuMs: 10, sentBytes: 1, receivedBytes: 2, memoryBytes, diskBytes: 0 }]]),
      });
    for (let at = T; at < T + 1_000; at += 5) await add(at, T, at - T);
    // The platform does not run for a quarter of an hour.
    const again = T + 1_900;
    for (let at = again; at < again + 100; at += 5) await add(at, again, 1);
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

  test("are deleted when they are old, a project at a time, so that their number has a limit", async () => {
    const { opened: database, project, usage } = await opened();
    const count = async () => {
      const rows = await database.database.selectFrom("usage_samples").select(["step", "at"]).execute();
      return Object.fromEntries(
        STORED_STEPS.map(({ seconds }) => [seconds, rows.filter(({ step }) => step === seconds).length]),
      );
    };
    const used = new Map([[project.id, { cpuMs: 1, sentBytes: 0, receivedBytes: 0, memoryBytes: 0, diskBytes: 0 }]]);
    for (let at = T; at < T + 900; at += 5) await usage.add({ ...NONE, at, began: T, used });
    expect(await count()).toEqual({ 5: 180, 30: 29, 300: 2, 900: 0 });
    const later = async (at: number) => {
      // One round deletes the samples of one project; the second one begins again.
      for (const each of [at, at + 5]) await usage.add({ ...NONE, at: each, began: at });
      return count();
    };
    expect(await later(T + 2 * HOUR)).toEqual({ 5: 0, 30: 30, 300: 3, 900: 1 });
    expect(await later(T + 2 * DAY)).toEqual({ 5: 0, 30: 0, 300: 3, 900: 1 });
    expect(await later(T + 8 * DAY)).toEqual({ 5: 0, 30: 0, 300: 0, 900: 1 });
    expect(await later(T + 91 * DAY)).toEqual({ 5: 0, 30: 0, 300: 0, 900: 0 });
    expect(await usage.spans({ start: 0, end: T + DAY })).toEqual([]);
  });
});

describe("a round of sampling", () => {
  test("gives the steps that it missed what is in use, and begins again after a long pause", async () => {
    const clock = { now: T * 1000 };
    const added: Pick<NewSamples, "at" | "missed" | "began">[] = [];
    const observed: ProjectSample[] = [];
    const sample = createSampling({
      store: {
        add({ at, missed, began }) {
          added.push({ at: at - T, missed: missed.map((each) => each - T), began: began - T });
          return Promise.resolve([]);
        },
      },
      meter: createMeter(new Map(), () => clock.now),
      now: () => clock.now,
      observe: (samples) => observed.push(...samples),
    });
    for (const seconds of [0, 5.01, 10, 22, 200]) {
      clock.now = (T + seconds) * 1000;
      await sample();
    }
    expect(added).toEqual([
      { at: 0, missed: [], began: 0 },
      { at: 5, missed: [], began: 0 },
      { at: 10, missed: [], began: 0 },
      { at: 20, missed: [15], began: 0 },
      { at: 200, missed: [], began: 200 },
    ]);
  });
});
