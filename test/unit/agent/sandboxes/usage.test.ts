import { afterEach, expect, test } from "vitest";
import {
  memoryV1,
  memoryV2,
  memoryKills as parseKills,
  socketBufferLimit,
  usageUsV2,
} from "../../../../agent/containers/cgroup/cgroup-files.ts";
import { planNetwork } from "../../../../agent/network/addresses.ts";
import { createMemoryKills } from "../../../../agent/sandboxes/memory-kills.ts";
import type { Sandbox } from "../../../../agent/sandboxes/sandbox.ts";
import { createUsageSampling, type UsageSampling } from "../../../../agent/sandboxes/usage.ts";
import { openStores } from "../../../../agent/store/stores.ts";
import { OPEN } from "../../../../shared/policy/egress-policy.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { build, resources } from "../../../support/fakes/agent-parts.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const running: UsageSampling[] = [];
afterEach(async () => {
  for (const usage of running.splice(0)) await usage.stop();
});

function setup({ everyMs = 5 } = {}) {
  const clock = { now: 1_000_000 };
  const used = { cpuUs: 400_000, memory: 30_000_000, cache: 5_000, shared: 0, kills: 0, gone: false };
  const traffic = { sentBytes: 900, receivedBytes: 100 };
  const disk = { bytes: 4_096 as number | undefined, asked: 0 };
  const live: Sandbox[] = [];
  const sandbox: Sandbox = {
    executionId: "e1",
    sandboxId: "s1",
    projectId: undefined,
    egress: OPEN,
    startedAt: clock.now,
    warm: true,
    restored: "nothing" as const,
    onTimeout: { does: "kill" as const, memory: true },
    endAt: 0,
    container: {
      id: "c1",
      pid: 1,
      slot: planNetwork("t", "10.99.0.0/24").slot(2),
      controlToken: "t",
      build,
      resources,
      runtime: "r",
      upperDirectory: "/layers/c1",
      createdAt: 0,
      cgroup: {
        freeze: () => Promise.resolve(),
        processes: () => [],
        thaw: () => undefined,
        resize: () => undefined,
        frozen: () => false,
        alive: () => true,
        kill: () => Promise.resolve(),
        usage() {
          if (used.gone) throw new Error("no such file");
          return used;
        },
        memoryKills() {
          if (used.gone) throw new Error("no such file");
          return used.kills;
        },
      },
    },
  };
  const store = openStores(":memory:", testSeal).samples;
  const log = createLog({ component: "test", level: "silent" });
  const memoryKills = createMemoryKills({ since: clock.now, log });
  const usage = createUsageSampling({
    running: () => live,
    store,
    diskUsage: () => {
      disk.asked++;
      return Promise.resolve(disk.bytes);
    },
    memoryKills,
    traffic: () => ({ ...traffic }),
    everyMs,
    now: () => clock.now,
    log,
  });
  running.push(usage);
  usage.start();
  return { clock, used, traffic, disk, live, sandbox, store, usage, memoryKills };
}

test("the first sample of a sandbox comes soon and does not count earlier usage", async () => {
  const { usage, sandbox, store, clock, live } = setup({ everyMs: 60_000 });
  // A sampling round would measure "e1" as well; the first round is over once it has measured "e0".
  live.push({ ...sandbox, executionId: "e0" });
  await expect.poll(() => usage.latest("e0")).toBeDefined();
  live.push(sandbox);
  usage.started(sandbox);
  await expect.poll(() => usage.latest("e1")).toBeDefined();
  const sample = {
    at: clock.now,
    cpuCount: 2,
    cpuUsedPct: 0,
    memUsed: 30_000_000,
    memTotal: 512 * 1024 * 1024,
    memCache: 5_000,
    diskUsed: 0,
    diskTotal: 1024 * 1024 * 1024,
  };
  expect(usage.latest("e1")).toEqual(sample);
  expect(store.between("e1", 0, clock.now)).toEqual([sample]);
  expect(store.between("e1", 0, clock.now - 1)).toEqual([]);
});

test("a sandbox's processor use is a percentage of all its processors, and never over 100", async () => {
  const { usage, sandbox, live, clock, used, store } = setup();
  const share = () => store.between("e1", clock.now, clock.now)[0]?.cpuUsedPct;
  live.push(sandbox);
  await expect.poll(() => usage.latest("e1")).toBeDefined();
  clock.now += 1_000;
  used.cpuUs += 500_000;
  await expect.poll(share).toBe(25);
  clock.now += 1_000;
  used.cpuUs += 9_000_000;
  await expect.poll(share).toBe(100);
});

test("the counters of an execution begin at its first sample", async () => {
  const { usage, sandbox, live, clock, used, traffic } = setup();
  expect(usage.use("e1")).toBeUndefined();
  live.push(sandbox);
  await expect.poll(() => usage.use("e1")).toMatchObject({ cpuMs: 0, sentBytes: 0, receivedBytes: 0 });
  clock.now += 1_000;
  used.cpuUs += 250_000;
  Object.assign(traffic, { sentBytes: 1_900, receivedBytes: 150 });
  const use = { cpuMs: 250, sentBytes: 1_000, receivedBytes: 50, memoryBytes: 30_000_000 };
  await expect.poll(() => usage.use("e1")).toMatchObject(use);
});

test("the disk is measured when the sandbox worked, and only then", async () => {
  const { usage, sandbox, live, clock, used, disk } = setup();
  const later = () => {
    clock.now += 1_000;
    return usage.latest("e1");
  };
  live.push(sandbox);
  await expect.poll(() => usage.latest("e1")).toBeDefined();
  used.cpuUs += 50_000;
  const rounds = async (count: number) => {
    const seen = clock.now;
    await expect.poll(() => later()?.at).toBeGreaterThan(seen + count * 1_000);
  };
  await expect.poll(() => later()?.diskUsed).toBe(4_096);
  await rounds(3);
  const { asked } = disk;
  await rounds(3);
  expect(disk.asked).toBe(asked);
  // The measurement takes too long, so the last figure is used again.
  disk.bytes = undefined;
  used.cpuUs += 50_000;
  await expect.poll(() => later() !== undefined && disk.asked).toBe(asked + 1);
  expect(usage.latest("e1")?.diskUsed).toBe(4_096);
});

test("a sandbox that ends between two samples is no error and has no more samples", async () => {
  const { usage, sandbox, live, used } = setup();
  live.push(sandbox);
  await expect.poll(() => usage.latest("e1")).toBeDefined();
  usage.started(sandbox);
  used.gone = true;
  live.pop();
  await expect.poll(() => usage.latest("e1")).toBeUndefined();
});

test("files in memory count as used, and not as cache", async () => {
  const { usage, sandbox, used, live } = setup({ everyMs: 60_000 });
  Object.assign(used, { memory: 30_000_000, cache: 21_000_000, shared: 20_000_000 });
  live.push(sandbox);
  usage.started(sandbox);
  await expect.poll(() => usage.latest("e1")).toMatchObject({ memUsed: 50_000_000, memCache: 1_000_000 });
});

test("memory is read from both versions of control groups, without the file cache", () => {
  expect(usageUsV2("usage_usec 123456\nuser_usec 1\n")).toBe(123_456);
  expect(memoryV2("1000\n", "anon 1\nfile 300\nfile_mapped 7\nshmem 50\n")).toEqual({
    memory: 700,
    cache: 300,
    shared: 50,
  });
  expect(memoryV1("1000\n", "cache 1\ntotal_cache 400\ntotal_shmem 60\n")).toEqual({
    memory: 600,
    cache: 400,
    shared: 60,
  });
  expect(memoryV1("100\n", "total_cache 400\n")).toEqual({ memory: 0, cache: 400, shared: 0 });
});

test("kills for memory are counted for each round, and once each", async () => {
  const { sandbox, live, used, memoryKills } = setup();
  used.kills = 2;
  live.push(sandbox);
  await expect.poll(() => memoryKills.total).toBe(2);
  memoryKills.look(sandbox);
  expect(memoryKills.total).toBe(2);
  used.kills = 5;
  await expect.poll(() => memoryKills.total).toBe(5);
  used.gone = true;
  memoryKills.look(sandbox);
  expect(memoryKills.total).toBe(5);
});

test("an agent that takes a sandbox over counts only the kills that follow", () => {
  const { sandbox, used, memoryKills } = setup({ everyMs: 60_000 });
  const older = { ...sandbox, startedAt: sandbox.startedAt - 1 };
  used.kills = 7;
  memoryKills.look(older);
  expect(memoryKills.total).toBe(0);
  used.kills = 8;
  memoryKills.look(older);
  expect(memoryKills.total).toBe(1);
});

test("the kernel's counter of kills is read from the files of both cgroup versions", () => {
  expect(parseKills("low 0\nmax 5\noom 2\noom_kill 1\noom_group_kill 0\n")).toBe(1);
  expect(parseKills("oom_kill_disable 0\nunder_oom 0\noom_kill 12\n")).toBe(12);
});

test("socket buffers get a quarter of a sandbox's memory, and no limit where the memory has none", () => {
  expect(socketBufferLimit("1073741824\n")).toBe(268_435_456);
  expect(socketBufferLimit("9223372036854771712\n")).toBeUndefined();
  expect(socketBufferLimit("")).toBeUndefined();
});
