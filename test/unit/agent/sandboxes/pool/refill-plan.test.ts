import { expect, test } from "vitest";
import { flavourKey } from "../../../../../agent/containers/live-container.ts";
import { planPool } from "../../../../../agent/sandboxes/pool/refill-plan.ts";
import { build, resources } from "../../../../support/fakes/agent-parts.ts";

const other = { ...build, buildId: "b2" };
const key = (one = build, runtime = "r") => flavourKey({ build: one, resources, runtime });
const GIB = 2 ** 30;
const view = {
  targets: [],
  runtime: "r",
  ready: new Map<string, number>(),
  resting: new Set<string>(),
  filling: true,
  freeMemory: 8 * GIB,
  reservedMemory: GIB,
};

test("an empty pool without targets needs no change", () => {
  expect(planPool(view)).toEqual({ boot: undefined, drop: new Map() });
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
  expect(planPool(short)).toEqual({ boot: undefined, drop: new Map([[key(build), 1]]) });
  const tight = { ...short, freeMemory: GIB + 1 };
  expect(planPool(tight)).toEqual({ boot: undefined, drop: new Map() });
});

test("while the node makes room on its disk nothing is started, and what is ready stays", () => {
  const targets = [{ build, resources, size: 2 }];
  const ready = new Map([[key(build), 1]]);
  expect(planPool({ ...view, targets, ready, filling: false })).toEqual({ boot: undefined, drop: new Map() });
  expect(planPool({ ...view, targets, ready }).boot?.build).toEqual(build);
});
