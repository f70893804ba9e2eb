/** What a reserve drops before it holds a sandbox: when, in which order, and when it may be made again. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Remakable } from "../../../../agent/node-disk/drop-plan.ts";
import { type DiskPressure, type Held, startPressure } from "../../../../agent/node-disk/pressure.ts";
import { createReserve, type DiskReserve } from "../../../../agent/node-disk/reserve.ts";
import { createLog } from "../../../../shared/program/log.ts";

const MIB = 1024 ** 2;

let freeMb: number;
let reserve: DiskReserve;
let pressure: DiskPressure;
let there: Remakable;
/** What was dropped, and how the pressure changed. */
let events: string[];
let onDrop: (id: string) => Promise<void>;
let held: string[];

const free = (mb: number) => void (freeMb = mb);
const rounds = (count: number) => vi.advanceTimersByTimeAsync(count * 600);

/** A sandbox that writes all the time; the first one writes most. */
function writer(id: string, speed: number): Held {
  return {
    id,
    written: () => Date.now() * speed * MIB,
    cpuUs: () => 0,
    usedBefore: () => undefined,
    over: () => 0,
    used: () => Promise.resolve(0),
    files: () => Promise.resolve(1),
    hold: () => Promise.resolve(void held.push(id)),
    release: () => undefined,
    end: () => Promise.resolve(),
  };
}

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
  free(50_000);
  there = { held: [], pool: [], frozen: [], layers: [] };
  [events, held] = [[], []];
  onDrop = () => Promise.resolve();
  const growers = [writer("a", 2), writer("b", 1)];
  reserve = createReserve({
    configuredMb: 1_000,
    dataRoot: () => Promise.resolve("/data"),
    snapshots: "/state",
    readSpace: () =>
      Promise.resolve({
        device: 1,
        freeBytes: freeMb * MIB,
        totalBytes: 100_000 * MIB,
        freeInodes: 10_000_000,
        totalInodes: 10_000_000,
      }),
    held: [],
    now: () => Date.now(),
  });
  pressure = startPressure({
    reserve,
    dataRoot: () => Promise.resolve("/data"),
    growers: () => growers,
    onChange: () => undefined,
    onPressure: (how) => void events.push(how),
    remakable: {
      there: () => there,
      async drop(of, id) {
        events.push(id);
        there = { ...there, [of]: there[of].filter((one) => one.id !== id) };
        await onDrop(id);
      },
      settled: () => Promise.resolve(),
    },
    now: () => Date.now(),
    log: createLog({ component: "test", level: "silent" }),
  });
});
afterEach(async () => {
  await pressure.stop();
  vi.useRealTimers();
});

const something = (): Remakable => ({
  held: [],
  pool: [{ id: "p1" }, { id: "p2" }],
  frozen: [
    { id: "f1", ran: false },
    { id: "newest state", ran: true },
  ],
  layers: [{ id: "l1", inUse: false }],
});
const all = ["p1", "p2", "f1", "l1"];

test("what can be made again is dropped kind by kind before the first sandbox is held, and nothing is while there is room", async () => {
  there = something();
  await rounds(5);
  expect(events).toEqual([]);
  free(900);
  // Each check begins one step, and the sandbox is held after the last one.
  await rounds(2);
  expect(held).toEqual([]);
  await rounds(6);
  expect(events).toEqual(["short", ...all]);
  expect(there).toEqual({ held: [], pool: [], frozen: [{ id: "newest state", ran: true }], layers: [] });
  expect(reserve.isHeld("a")).toBe(true);
});

test("what can be made again is kept when less than all of it made enough room, and then no sandbox is held", async () => {
  there = something();
  onDrop = (id) => Promise.resolve(id === "p2" ? free(1_050) : undefined);
  free(900);
  await rounds(10);
  expect(events).toEqual(["short", "p1", "p2", "settling"]);
  expect(held).toEqual([]);
});

test("a drop does not keep the agent from holding a sandbox when half of the reserve is gone", async () => {
  there = something();
  free(400);
  await rounds(1);
  expect([events, held[0]]).toEqual([["short", "p1", "p2"], "a"]);
});

test("a drop that does not end delays the hold of a sandbox by ten seconds at most", async () => {
  there = { ...something(), frozen: [], layers: [] };
  onDrop = () => {
    there = { held: [], pool: [], frozen: [], layers: [] };
    return new Promise(() => undefined);
  };
  free(900);
  await vi.advanceTimersByTimeAsync(9_000);
  expect([events, held]).toEqual([["short", "p1"], []]);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(reserve.isHeld("a")).toBe(true);
});

test("what could not be dropped is tried again only at the next shortage", async () => {
  there = something();
  onDrop = async (id) => {
    there = something();
    throw new Error(`cannot drop ${id}`);
  };
  free(900);
  await rounds(12);
  expect(events).toEqual(["short", ...all]);
  free(5_000);
  await rounds(12);
  expect(events).toEqual(["short", ...all, "settling", "none"]);
  free(900);
  await rounds(1);
  expect(events.slice(-3)).toEqual(["short", "p1", "p2"]);
});

test("the pool may fill again after five seconds with room above the margin, and not before", async () => {
  free(900);
  await rounds(2);
  free(1_050);
  await rounds(20);
  expect(events).toEqual(["short", "settling"]);
  free(5_000);
  await rounds(5);
  expect(events).toEqual(["short", "settling"]);
  await rounds(10);
  expect(events).toEqual(["short", "settling", "none"]);
});
