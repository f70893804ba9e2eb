import { describe, expect, test } from "vitest";
import {
  cpuPercent,
  readCpuCount,
  readCpuTime,
  readMachineCpuTime,
  readMemory,
} from "../../../../envd/metrics/resources.ts";
import { childLimits } from "../../../../envd/runtime/own-limits.ts";

const MEMINFO = "MemTotal:        1000 kB\nMemFree: 100 kB\nMemAvailable: 600 kB\nCached: 300 kB\n";

describe("the memory of a container", () => {
  test("is read from a control group of version 2", () => {
    const files = { limit: "524288\n", usage: "300000\n", stat: "anon 1\nfile 100000\n", meminfo: MEMINFO };
    expect(readMemory(files)).toEqual({ totalBytes: 524_288, usedBytes: 200_000, cacheBytes: 100_000 });
  });

  test("is read from a control group of version 1, whose cache has another name", () => {
    const files = { limit: "524288", usage: "300000", stat: "cache 1\ntotal_cache 50000\n", meminfo: MEMINFO };
    expect(readMemory(files)).toMatchObject({ usedBytes: 250_000, cacheBytes: 50_000 });
  });

  test.each(["file 100000\nshmem 90000\n", "total_cache 100000\ntotal_shmem 90000\n"])(
    "with files in memory (%j) has these as used, and not as cache",
    (stat) => {
      const files = { limit: "524288\n", usage: "300000\n", stat, meminfo: MEMINFO };
      expect(readMemory(files)).toMatchObject({ usedBytes: 290_000, cacheBytes: 10_000 });
    },
  );

  test.each(["max\n", "9223372036854771712"])("without a limit (%j) is the machine's", (limit) => {
    expect(readMemory({ limit, usage: "5000", stat: "", meminfo: MEMINFO }).totalBytes).toBe(1_024_000);
  });

  test("without a control group is read from the machine", () => {
    const files = { limit: "", usage: "", stat: "", meminfo: MEMINFO };
    expect(readMemory(files)).toEqual({ totalBytes: 1_024_000, usedBytes: 409_600, cacheBytes: 307_200 });
    expect(readMemory({ ...files, meminfo: `${MEMINFO}Shmem: 100 kB\n` }).cacheBytes).toBe(204_800);
  });
});

describe("the processors of a container", () => {
  test.each([
    ["200000 100000\n", "", "", 2],
    ["max 100000\n", "", "", 4],
    ["", "50000\n", "100000\n", 0.5],
    ["", "-1\n", "100000\n", 4],
    ["", "", "", 4],
    ["900000 100000", "", "", 4],
  ])("are limited by %j, or by %j of %j, to %d", (max, quota, period, expected) => {
    expect(readCpuCount(max, quota, period, 4)).toBe(expected);
  });

  test("have a used time that is read from either version of control groups, or from the machine", () => {
    expect(readCpuTime("usage_usec 5000\nuser_usec 1\n", "")).toBe(5_000_000);
    expect(readCpuTime("nr_periods 1\n", "77\n")).toBe(77);
    expect(readCpuTime("", "")).toBeUndefined();
    expect(readMachineCpuTime("cpu  10 0 5 100 7 1 1 3 0 0\ncpu0 …")).toBe(200_000_000);
  });

  test.each([
    [500, 1_000, 1, 50],
    [1_000, 1_000, 2, 50],
    [5_000, 1_000, 1, 100],
    [-5, 1_000, 1, 0],
    [5, 0, 1, 0],
  ])("%i of %i ns on %d cpus is %d %%", (used, elapsed, count, expected) => {
    expect(cpuPercent(used, elapsed, count)).toBe(expected);
  });
});

describe("limits that children get back", () => {
  const limits =
    "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 524288               files\n";

  test("include the container's soft limit of files and a higher OOM score than envd's", () => {
    expect(childLimits("0\n", limits)).toEqual({ oomScore: 100, openFiles: 1_024 });
  });

  test("have a highest OOM score, and leave a limit unchanged that cannot be read", () => {
    expect(childLimits("950", "")).toEqual({ oomScore: 1_000, openFiles: -1 });
    expect(childLimits("", "Max open files unlimited unlimited files")).toEqual({ oomScore: 100, openFiles: -1 });
  });
});
