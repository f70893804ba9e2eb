import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type DiskPressure, type Held, startPressure } from "../../../../agent/node-disk/pressure.ts";
import { createReserve, type DiskReserve } from "../../../../agent/node-disk/reserve.ts";
import type { Space } from "../../../../agent/node-disk/space.ts";
import { createLog } from "../../../../shared/program/log.ts";

const MIB = 1024 ** 2;
const log = createLog({ component: "test", level: "silent" });

interface Fake extends Held {
  bytes: number;
  cpu: number;
  measured: number | undefined;
  disk: number | undefined;
  count: number | undefined;
  above: number;
  readonly told: string[];
}

const space = { sandboxes: {} as Space, snapshots: {} as Space };
/** This node has nothing that can be made again; dropping.test.ts has. */
const nothing = {
  there: () => ({ held: [], pool: [], frozen: [], layers: [] }),
  drop: () => Promise.resolve(),
  settled: () => Promise.resolve(),
};
let growers: Fake[];
let changes: number;
let reserve: DiskReserve;
let pressure: DiskPressure;

function grower(id: string): Fake {
  const fake: Fake = {
    id,
    bytes: 0,
    cpu: 0,
    measured: undefined,
    disk: 0,
    count: 1,
    above: 0,
    told: [],
    written: () => fake.bytes,
    cpuUs: () => fake.cpu,
    usedBefore: () => fake.measured,
    over: () => fake.above,
    used: () => Promise.resolve(fake.disk),
    files: () => Promise.resolve(fake.count),
    hold: () => Promise.resolve(void fake.told.push("hold")),
    release: () => void fake.told.push("release"),
    async end() {
      fake.told.push("end");
      growers = growers.filter((one) => one !== fake);
    },
  };
  return fake;
}

const room = (freeMb: number, more: Partial<Space> = {}): Space => ({
  device: 1,
  freeBytes: freeMb * MIB,
  totalBytes: 100_000 * MIB,
  freeInodes: 10_000_000,
  totalInodes: 10_000_000,
  ...more,
});
const free = (mb: number) => void (space.sandboxes = room(mb));
const rounds = (count: number) => vi.advanceTimersByTimeAsync(count * 600);

/** Starts the watch of the disk, after a former agent that held these. */
function watch(held: readonly string[] = []): void {
  reserve = createReserve({
    configuredMb: 1_000,
    dataRoot: () => Promise.resolve("/data"),
    snapshots: "/state",
    readSpace: (directory) => Promise.resolve(directory === "/data" ? space.sandboxes : space.snapshots),
    held,
    now: () => Date.now(),
  });
  pressure = startPressure({
    reserve,
    dataRoot: () => Promise.resolve("/data"),
    growers: () => growers,
    onChange: () => void changes++,
    onPressure: () => undefined,
    remakable: nothing,
    now: () => Date.now(),
    log,
  });
}

let a: Fake;
let b: Fake;
beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
  a = grower("a");
  b = grower("b");
  growers = [a, b];
  changes = 0;
  free(50_000);
  space.snapshots = room(50_000);
  watch();
});
afterEach(async () => {
  await pressure.stop();
  vi.useRealTimers();
});

/** Both sandboxes write, the first one more than the second. */
const writing = () => {
  const timer = setInterval(() => {
    if (!reserve.isHeld("a")) a.bytes += 50 * MIB;
    if (!reserve.isHeld("b")) b.bytes += 5 * MIB;
  }, 20);
  return () => clearInterval(timer);
};

test("nothing happens while there is room, however much is written", async () => {
  const stop = writing();
  await rounds(20);
  expect([reserve.refusal(), reserve.snapshotRefusal("a"), a.told, b.told]).toEqual([undefined, undefined, [], []]);
  stop();
});

test("below the reserve the sandbox that writes most is held, and nothing new is started, with the reserve and its setting in the reason", async () => {
  await rounds(2);
  const stop = writing();
  free(900);
  await rounds(3);
  stop();
  expect(reserve.isHeld("a")).toBe(true);
  expect(a.told).toContain("hold");
  expect(b.told).toEqual([]);
  expect(changes).toBe(1);
  expect(reserve.refusal()).toMatchObject({
    code: "no_space",
    message: expect.stringMatching(/900 MiB free and keeps 1000 MiB in reserve \(SVC_DISK_RESERVE_MB\)/) as unknown,
  });
  expect(reserve.snapshotRefusal("b")).toMatchObject({ code: "no_space" });
});

test("the next sandbox is held only when the free space still shrinks", async () => {
  const stop = writing();
  free(900);
  await rounds(10);
  expect(b.told).toEqual([]);
  free(890);
  await rounds(3);
  expect(reserve.isHeld("b")).toBe(true);
  stop();
});

test("a sandbox over its own disk size is held before one within its size that writes more", async () => {
  b.above = 10 * MIB;
  const stop = writing();
  free(900);
  await rounds(3);
  stop();
  expect([reserve.isHeld("a"), reserve.isHeld("b")]).toEqual([false, true]);
});

test("no sandbox is held while the disk is short and none writes", async () => {
  a.bytes = 1_000 * MIB;
  free(900);
  await rounds(20);
  expect([a.told, b.told]).toEqual([[], []]);
});

test("a sandbox whose writing is counted nowhere is found by its disk", async () => {
  b.measured = 100 * MIB;
  b.disk = 400 * MIB;
  free(900);
  await rounds(2);
  expect([reserve.isHeld("a"), reserve.isHeld("b")]).toEqual([false, true]);
});

test("a sandbox whose disk was never measured can be held from the second measurement on", async () => {
  b.disk = 400 * MIB;
  free(900);
  await rounds(2);
  expect([a.told, b.told]).toEqual([[], []]);
  b.disk = 500 * MIB;
  await rounds(10);
  expect([reserve.isHeld("a"), reserve.isHeld("b")]).toEqual([false, true]);
});

test("when no disk shows the cause and half of the reserve is gone, the busiest sandbox is held", async () => {
  const timer = setInterval(() => void (b.cpu += 10_000), 20);
  free(900);
  await rounds(5);
  expect(b.told).toEqual([]);
  free(400);
  await rounds(3);
  clearInterval(timer);
  expect([reserve.isHeld("a"), reserve.isHeld("b")]).toEqual([false, true]);
});

test("when inodes are short the sandbox with most files is held, and before it one whose files cannot be counted in time", async () => {
  a.bytes = 1_000 * MIB;
  b.count = 5_000_000;
  space.sandboxes = room(50_000, { freeInodes: 90_000 });
  await rounds(2);
  expect([reserve.isHeld("a"), reserve.isHeld("b")]).toEqual([false, true]);
  expect(reserve.refusal()?.message).toMatch(/room for 90000 files and keeps room for 100000/);
  a.count = undefined;
  space.sandboxes = room(50_000, { freeInodes: 80_000 });
  await rounds(12);
  expect(reserve.isHeld("a")).toBe(true);
});

test("a held sandbox continues after five seconds with room, and not before", async () => {
  const stop = writing();
  free(900);
  await rounds(3);
  stop();
  free(1_050);
  await rounds(20);
  expect([reserve.isHeld("a"), reserve.refusal()]).toEqual([true, undefined]);
  expect(reserve.snapshotRefusal("a")?.message).toMatch(/is held/);
  free(5_000);
  await rounds(5);
  expect(reserve.isHeld("a")).toBe(true);
  await rounds(10);
  expect([reserve.isHeld("a"), a.told.at(-1), changes]).toEqual([false, "release", 2]);
});

test("sandboxes that are held for five minutes are ended, one at a time", async () => {
  const stop = writing();
  free(900);
  await rounds(3);
  free(890);
  await rounds(3);
  expect([reserve.isHeld("a"), reserve.isHeld("b")]).toEqual([true, true]);
  await vi.advanceTimersByTimeAsync(290_000);
  expect([...a.told, ...b.told]).not.toContain("end");
  await vi.advanceTimersByTimeAsync(20_000);
  expect(a.told).toContain("end");
  expect(b.told).not.toContain("end");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(b.told).toContain("end");
  stop();
});

test("a sandbox that a former agent held stays held while the disk is short, and is released afterwards", async () => {
  await pressure.stop();
  watch(["b"]);
  free(900);
  await rounds(4);
  expect(reserve.isHeld("b")).toBe(true);
  free(5_000);
  await rounds(15);
  expect([reserve.isHeld("b"), b.told.at(-1)]).toEqual([false, "release"]);
});

test("a short disk of snapshots refuses snapshots and holds no sandbox", async () => {
  const stop = writing();
  space.snapshots = room(10);
  await rounds(5);
  stop();
  expect(reserve.refusal()).toBeUndefined();
  expect(reserve.snapshotRefusal("a")).toMatchObject({ code: "no_space" });
  expect([a.told, b.told]).toEqual([[], []]);
});
