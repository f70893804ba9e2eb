/** The limits of a size: for Docker, and as writes to the files of a cgroup in an order that the kernel takes. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import {
  dockerLimits,
  fits,
  isSize,
  leastMemoryMb,
  limitWrites,
  sameSize,
  setLimits,
} from "../../../../../agent/containers/cgroup/limits.ts";

const MIB = 2 ** 20;
const one = { version: 1, memory: "/memory", cpu: "/cpu", cpuset: "/cpuset" } as const;
const two = { version: 2, memory: "/unified", cpu: "/unified", cpuset: "/unified" } as const;
const [ram, both, quota] = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "cpu.cfs_quota_us"];

test("Docker gets memory without swap and processors as billionths", () => {
  const limits = dockerLimits({ cpuCount: 3, memoryMB: 512 });
  expect(limits).toEqual({ Memory: 512 * MIB, MemorySwap: 512 * MIB, NanoCpus: 3_000_000_000 });
  expect(isSize(limits, { cpuCount: 3, memoryMB: 512 })).toBe(true);
  for (const other of [{ Memory: 1 }, { MemorySwap: -1 }, { NanoCpus: 0 }])
    expect(isSize({ ...limits, ...other }, { cpuCount: 3, memoryMB: 512 })).toBe(false);
});

test.each([
  ["raised", 128, true, [both, ram, quota]],
  ["lowered", 1024, true, [ram, both, quota]],
  ["the same", 512, true, [ram, both, quota]],
  ["raised on a kernel that does not count swap", 128, false, [ram, quota]],
])(
  "version 1, memory %s: the limit of memory and swap is never below the one of memory",
  (_how, mb, swap, expected) => {
    const before = { memoryBytes: mb * MIB, swap, periodUs: 100_000 };
    const writes = limitWrites(one, { cpuCount: 2, memoryMB: 512 }, before);
    expect(writes.map(([file]) => file.split("/").at(-1))).toEqual(expected);
    expect(Object.fromEntries(writes)).toMatchObject({
      "/memory/memory.limit_in_bytes": String(512 * MIB),
      "/cpu/cpu.cfs_quota_us": "200000",
    });
  },
);

test("version 2 has one file for memory, and one for the quota with its period", () => {
  const before = { memoryBytes: Infinity, swap: false, periodUs: 50_000 };
  expect(limitWrites(two, { cpuCount: 4, memoryMB: 256 }, before)).toEqual([
    ["/unified/memory.max", String(256 * MIB)],
    ["/unified/cpu.max", "200000 50000"],
  ]);
});

test("a kernel of version 1 takes each write of any change, and has the new size after the last one", () => {
  const sizes = fc.integer({ min: 128, max: 4_096 });
  fc.assert(
    fc.property(sizes, sizes, (from, to) => {
      const kernel = new Map([
        [ram, from * MIB],
        [both, from * MIB],
      ]);
      const before = { memoryBytes: from * MIB, swap: true, periodUs: 100_000 };
      for (const [file, value] of limitWrites(one, { cpuCount: 1, memoryMB: to }, before)) {
        kernel.set(file.split("/").at(-1) ?? "", Number(value));
        expect(kernel.get(ram)).toBeLessThanOrEqual(kernel.get(both) ?? 0);
      }
      expect([kernel.get(ram), kernel.get(both)]).toEqual([to * MIB, to * MIB]);
    }),
  );
});

test.each([1, 2] as const)("the files of version %i say the new size", (version) => {
  const directory = mkdtempSync(join(tmpdir(), "svc-limits-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const files =
    version === 1
      ? { [ram]: "268435456\n", [both]: "268435456\n", "cpu.cfs_period_us": "100000\n", [quota]: "100000\n" }
      : { "memory.max": "max\n", "cpu.max": "max 100000\n" };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  setLimits({ version, memory: directory, cpu: directory, cpuset: directory }, { cpuCount: 2, memoryMB: 512 });
  const read = (name: string) => readFileSync(join(directory, name), "utf8");
  if (version === 1) expect([read(ram), read(both), read(quota)]).toEqual(["536870912", "536870912", "200000"]);
  else expect([read("memory.max"), read("cpu.max")]).toEqual(["536870912", "200000 100000"]);
});

test("a size fits what a container uses, with shared memory and 32 MiB for its first work; file cache does not count", () => {
  const usage = { memory: 80 * MIB, shared: 16 * MIB };
  expect(leastMemoryMb(96 * MIB)).toBe(128);
  expect(fits(usage, { cpuCount: 1, memoryMB: 128 })).toBe(true);
  expect(fits({ ...usage, shared: 16 * MIB + 1 }, { cpuCount: 1, memoryMB: 128 })).toBe(false);
});

test("sizes are the same when processors and memory are", () => {
  const size = { cpuCount: 1, memoryMB: 128 };
  expect(sameSize(size, { ...size })).toBe(true);
  expect(sameSize(size, { ...size, cpuCount: 2 })).toBe(false);
  expect(sameSize(size, { ...size, memoryMB: 256 })).toBe(false);
});
