/** How many containers a node keeps ready of which build. */

import { describe, expect, test } from "vitest";
import { canBePooled, createPools } from "../../../../orchestrator/nodes/pools/pool-targets.ts";
import type { Build } from "../../../../orchestrator/store/builds/record.ts";

describe("pools", () => {
  const base: Build = {
    id: "b1",
    templateId: "t",
    status: "ready",
    image: "i",
    cpuCount: 1,
    memoryMB: 128,
    diskSizeMB: 0,
    envdVersion: "0",
    defaultUser: undefined,
    defaultWorkdir: undefined,
    kind: "template",
    nodeId: undefined,
    memory: false,
    sourceSandboxId: undefined,
    wantedTags: [],
    sealedSettings: undefined,
    parentBuildId: undefined,
    snapshotId: undefined,
    size: undefined,
    startedAt: undefined,
    deadlineAt: undefined,
    withAccess: false,
    accepted: false,
    logOffset: 0,
    volumeMounts: [],
    reason: undefined,
    createdAt: 0,
    updatedAt: 0,
    finishedAt: 0,
  };
  const sizes = (targets: readonly { readonly size: number }[]) => targets.map(({ size }) => size);

  test("of the base template are never empty, grow with a burst up to the ceiling, and shrink when the burst is over", () => {
    const clock = { now: 0 };
    const pools = createPools({ base, platform: [], baseSize: 3, keptSize: 0, ceiling: 8, now: () => clock.now });
    expect(sizes(pools.targets("n1", 1))).toEqual([3]);
    for (let index = 0; index < 6; index++) pools.used(base);
    expect(sizes(pools.targets("n1", 1))).toEqual([6]);
    for (let index = 0; index < 60; index++) pools.used(base);
    expect(sizes(pools.targets("n1", 1))).toEqual([8]);
    expect(sizes(pools.targets("n1", 4))).toEqual([2]);
    clock.now = 3_590_000;
    expect(sizes(pools.targets("n1", 1))).toEqual([8]);
    clock.now = 3_606_000;
    expect(sizes(pools.targets("n1", 1))).toEqual([3]);
  });

  test("follow the wishes of owners within the ceiling, keep none where none is wanted, and follow the demand again afterwards", () => {
    const pools = createPools({ base, platform: [], baseSize: 1, keptSize: 0, ceiling: 8, now: () => 0 });
    const [many, few, none] = ["b2", "b3", "b4"].map((id) => ({ ...base, id }));
    const sizeOf = (build: Build | undefined, nodes = 1) =>
      pools.targets("n1", nodes).find((target) => target.build.buildId === build?.id)?.size;
    if (many === undefined || few === undefined || none === undefined) throw new Error("three builds");
    for (let index = 0; index < 5; index++) for (const build of [few, none]) pools.used(build);
    pools.wanted([
      { build: many, size: 20 },
      { build: few, size: 2 },
      { build: none, size: 0 },
      { build: { ...base, id: "b5", kind: "snapshot" }, size: 3 },
    ]);
    expect([many, few, none].map((build) => sizeOf(build))).toEqual([8, 5, undefined]);
    expect(sizeOf(many, 4)).toBe(2);
    expect(pools.targets("n1", 1)).toHaveLength(3);
    pools.wanted([]);
    expect([many, few, none].map((build) => sizeOf(build))).toEqual([undefined, 5, 5]);
  });

  test("of another build exist once it is started often enough", () => {
    const pools = createPools({ base, platform: [], baseSize: 1, keptSize: 0, ceiling: 8, now: () => 0 });
    const other = { ...base, id: "b2" };
    pools.used(other);
    expect(pools.targets("n1", 1)).toHaveLength(1);
    pools.used(other);
    pools.used(other);
    expect(pools.targets("n1", 1).map(({ build, size }) => [build.buildId, size])).toEqual([
      ["b1", 1],
      ["b2", 3],
    ]);
  });

  test("of a template of the platform are kept without demand, follow its next build, and end with it", () => {
    const clock = { now: 0 };
    const pools = createPools({ base, platform: [], baseSize: 1, keptSize: 2, ceiling: 8, now: () => clock.now });
    const kept = () => pools.targets("n1", 1).map(({ build, size }) => [build.buildId, size]);
    const first = { ...base, id: "b2", nodeId: "n1" };
    pools.keep(first);
    clock.now = 10_000_000;
    expect(kept()).toEqual([
      ["b1", 1],
      ["b2", 2],
    ]);
    expect(pools.targets("n2", 1)).toHaveLength(1);
    for (let index = 0; index < 5; index++) pools.used(first);
    expect(kept()[1]).toEqual(["b2", 5]);
    pools.replaced(["b2"], { ...first, id: "b3" });
    clock.now = 20_000_000;
    expect(kept()[1]).toEqual(["b3", 2]);
    pools.gone(["b3"]);
    expect(kept()).toEqual([["b1", 1]]);
    pools.keep({ ...first, snapshotId: "s1" });
    expect(kept()).toEqual([["b1", 1]]);
  });

  test.each([
    ["an image", {}, true],
    ["a template with its memory", { snapshotId: "s1", memory: true }, true],
    ["a template whose memory was not taken", { snapshotId: "s1" }, false],
    ["a snapshot of a sandbox", { kind: "snapshot", memory: true }, false],
  ] as const)("%s has a pool: %j, %j", (_what, more, pooled) => {
    expect(canBePooled({ ...base, ...more })).toBe(pooled);
  });

  test.each([
    ["no start", [], 0],
    ["three within ten seconds", [4, 7, 14], 3],
    ["three that are further apart", [0, 16, 32], 1],
    ["an early burst that was larger than a late one", [0, 1, 2, 3, 3_000, 3_001], 4],
    ["two each second for an hour", Array.from({ length: 7_200 }, (_, index) => index / 2), 30],
  ])("are sized by the largest burst of the hour: of %s it has %#", (_what, seconds, most) => {
    const clock = { now: 0 };
    const pools = createPools({ base, platform: [], baseSize: 0, keptSize: 0, ceiling: 128, now: () => clock.now });
    for (const second of seconds) {
      clock.now = second * 1000;
      pools.used(base);
    }
    expect(sizes(pools.targets("n1", 1))).toEqual(most === 0 ? [] : [most]);
  });

  test("of several bursts keep the largest of the last hour, and less as it passes", () => {
    const clock = { now: 0 };
    const pools = createPools({ base, platform: [], baseSize: 1, keptSize: 0, ceiling: 128, now: () => clock.now });
    const seen: number[][] = [];
    for (const [minute, burst] of [
      [0, 100],
      [20, 30],
      [50, 5],
      [61, 0],
      [81, 0],
      [111, 0],
    ] as const) {
      clock.now = minute * 60_000;
      for (let index = 0; index < burst; index++) pools.used(base);
      seen.push(sizes(pools.targets("n1", 1)));
    }
    expect(seen).toEqual([[100], [100], [100], [30], [5], [1]]);
  });
});
