import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { flavourKey } from "../../../../../agent/containers/live-container.ts";
import { planPool } from "../../../../../agent/sandboxes/pool/refill-plan.ts";
import { build, resources } from "../../../../support/fakes/agent-parts.ts";

const other = { ...build, buildId: "b2" };
const key = (one = build, runtime = "r") => flavourKey({ build: one, resources, runtime });
const GIB = 2 ** 30;
const MIB = 2 ** 20;
const view = {
  targets: [],
  runtime: "r",
  ready: new Map<string, number>(),
  starting: new Map<string, number>(),
  bytes: new Map<string, number>(),
  memoryBound: 100 * GIB,
  resting: new Set<string>(),
  filling: true,
  freeMemory: 8 * GIB,
  reservedMemory: GIB,
};

test("an empty pool without targets needs no change", () => {
  expect(planPool(view)).toEqual({ boot: undefined, filled: 1, drop: new Map(), full: false });
});

test("the pool that is emptiest for its size is filled first", () => {
  const targets = [
    { build, resources, size: 4 },
    { build: other, resources, size: 2 },
  ];
  const ready = new Map([
    [key(build), 3],
    [key(other), 1],
  ]);
  expect(planPool({ ...view, targets, ready }).boot?.build).toEqual(other);
});

test("a pool whose last start has just failed does not keep the others from being filled", () => {
  const targets = [
    { build, resources, size: 4 },
    { build: other, resources, size: 2 },
  ];
  const ready = new Map([[key(build), 3]]);
  const { boot, drop } = planPool({ ...view, targets, ready, resting: new Set([key(other)]) });
  expect(boot?.build).toEqual(build);
  expect(drop.size).toBe(0);
  expect(planPool({ ...view, targets, ready, resting: new Set([key(build), key(other)]) }).boot).toBeUndefined();
});

test("containers of another size stay: they get the size of their sandbox when they are claimed", () => {
  const sized = { ...resources, cpuCount: 8, memoryMB: 4_096 };
  const ready = new Map([[key(build), 2]]);
  const { boot, drop } = planPool({ ...view, targets: [{ build, resources: sized, size: 3 }], ready });
  expect([boot?.resources, drop.size]).toEqual([sized, 0]);
  const disk = { ...resources, diskSizeMB: 1 };
  expect(planPool({ ...view, targets: [{ build, resources: disk, size: 3 }], ready }).drop).toEqual(ready);
});

test("containers that are no longer wanted or have an old runtime are dropped", () => {
  const targets = [{ build, resources, size: 1 }];
  const ready = new Map([
    [key(build), 3],
    [key(build, "old"), 2],
    [key(other), 1],
  ]);
  const { drop, boot } = planPool({ ...view, targets, ready });
  expect(drop).toEqual(
    new Map([
      [key(build), 2],
      [key(build, "old"), 2],
      [key(other), 1],
    ]),
  );
  expect(boot).toBeUndefined();
});

test("when memory is short no container is started, and one at a time is removed", () => {
  const targets = [{ build, resources, size: 4 }];
  const short = { ...view, targets, freeMemory: GIB / 2, ready: new Map([[key(build), 2]]) };
  expect(planPool(short)).toEqual({ boot: undefined, filled: 1, drop: new Map([[key(build), 1]]), full: false });
  const tight = { ...short, freeMemory: GIB + 1 };
  expect(planPool(tight)).toEqual({ boot: undefined, filled: 1, drop: new Map(), full: false });
});

test("while the node makes room on its disk nothing is started, and what is ready stays", () => {
  const targets = [{ build, resources, size: 2 }];
  const ready = new Map([[key(build), 1]]);
  expect(planPool({ ...view, targets, ready, filling: false })).toEqual({
    boot: undefined,
    filled: 1,
    drop: new Map(),
    full: false,
  });
  expect(planPool({ ...view, targets, ready }).boot?.build).toEqual(build);
});

test.each([
  [0, 0],
  [1, 0.25],
  [3, 0.75],
])("with %i of four ready a start is as urgent as a pool filled to %d", (count, filled) => {
  const ready = new Map([[key(build), count]]);
  expect(planPool({ ...view, targets: [{ build, resources, size: 4 }], ready })).toMatchObject({ filled });
});

test("what is being started counts as there", () => {
  const targets = [{ build, resources, size: 3 }];
  const half = { ...view, targets, ready: new Map([[key(build), 1]]) };
  expect(planPool({ ...half, starting: new Map([[key(build), 1]]) }).boot?.build).toEqual(build);
  expect(planPool({ ...half, starting: new Map([[key(build), 2]]) }).boot).toBeUndefined();
});

describe("a pool that may take 500 MiB", () => {
  const bound = { ...view, memoryBound: 500 * MIB };
  const all = [
    { build, resources, size: 20 },
    { build: other, resources, size: 4 },
  ];
  const bytes = new Map([
    [key(build), 50 * MIB],
    [key(other), 100 * MIB],
  ]);
  const [one, two] = [key(build), key(other)];
  const first = all.slice(0, 1);
  const nothing = { boot: undefined, drop: {} };
  test.each([
    ["starts what still fits", { ready: { [one]: 9 }, targets: first }, { ...nothing, boot: "b1", full: false }],
    ["starts nothing more when it is full", { ready: { [one]: 10 }, targets: first }, { ...nothing, full: true }],
    [
      "gives up two of the fullest build for the first of another one",
      { ready: { [one]: 10 }, targets: all },
      { boot: "b2", drop: { [one]: 2 }, full: true },
    ],
    [
      "keeps its shares once they are even",
      { ready: { [one]: 6, [two]: 2 }, targets: all },
      { ...nothing, full: true },
    ],
    [
      "keeps what was measured a little above the bound",
      { ready: { [one]: 11 }, targets: first },
      { ...nothing, full: true },
    ],
    [
      "removes one at a time of what is far above it",
      { ready: { [one]: 12 }, targets: first },
      { ...nothing, drop: { [one]: 1 }, full: true },
    ],
    [
      "removes first what is not asked for",
      { ready: { [one]: 6, [two]: 2 }, targets: all.slice(1) },
      { boot: "b2", drop: { [one]: 6 }, full: false },
    ],
  ])("%s", (_what, { ready, targets }, expected) => {
    const { boot, drop, full } = planPool({ ...bound, targets, bytes, ready: new Map(Object.entries(ready)) });
    expect({ boot: boot?.build.buildId, drop: Object.fromEntries(drop), full }).toEqual(expected);
  });
});

test("the pool never grows above its bound, comes to rest, and then nothing that fits is missing", () => {
  const names = ["b1", "b2", "b3", "b4"];
  const one = fc.record({
    size: fc.integer({ min: 1, max: 40 }),
    ready: fc.integer({ min: 0, max: 40 }),
    mib: fc.integer({ min: 1, max: 400 }),
  });
  const given = fc.record({
    builds: fc.array(one, { minLength: 1, maxLength: names.length }),
    memoryBound: fc.integer({ min: 0, max: 4_000 }).map((mib) => mib * MIB),
  });
  fc.assert(
    fc.property(given, ({ builds, memoryBound }) => {
      const flavours = builds.map((of, index) => ({ ...of, build: { ...build, buildId: names[index] ?? "" } }));
      const targets = flavours.map(({ build: of, size }) => ({ build: of, resources, size }));
      const bytes = new Map(flavours.map((of) => [key(of.build), of.mib * MIB]));
      const ready = new Map(flavours.map((of) => [key(of.build), of.ready]));
      const used = () => [...ready].reduce((sum, [name, count]) => sum + count * (bytes.get(name) ?? 0), 0);
      let steps = 0;
      for (;;) {
        const before = used();
        const step = planPool({ ...view, targets, bytes, ready, memoryBound });
        for (const [name, count] of step.drop) ready.set(name, (ready.get(name) ?? 0) - count);
        if (step.boot !== undefined) {
          const name = flavourKey(step.boot);
          ready.set(name, (ready.get(name) ?? 0) + 1);
          expect(used()).toBeLessThanOrEqual(memoryBound);
        } else if (step.drop.size === 0) break;
        expect(used()).toBeLessThanOrEqual(Math.max(before, memoryBound));
        expect(++steps).toBeLessThan(5_000);
      }
      for (const { build: of, size, mib } of flavours) {
        const count = ready.get(key(of)) ?? 0;
        expect(count).toBeLessThanOrEqual(size);
        if (count < size) expect(used() + mib * MIB).toBeGreaterThan(memoryBound);
      }
    }),
    { numRuns: 200 },
  );
});
