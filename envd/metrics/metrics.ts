/** GET /metrics: the sandbox's use and limits, seen from inside. CPU is measured between two requests. */

import { readFile, statfs } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { cpuPercent, readCpuCount, readCpuTime, readMachineCpuTime, readMemory } from "./resources.ts";

const MIB = 1024 * 1024;
const GROUPS = "/sys/fs/cgroup";

interface CpuSample {
  readonly usedNs: number;
  readonly atNs: number;
}

export class Metrics {
  readonly #now: () => number;
  #last: CpuSample | undefined;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The body of `GET /metrics`. */
  async read(): Promise<Record<string, number>> {
    const [memory, cpu, disk] = await Promise.all([memoryFiles().then(readMemory), this.#cpu(), statfs("/")]);
    return {
      ts: Math.floor(this.#now() / 1_000),
      cpu_count: Math.max(1, Math.round(cpu.count)),
      cpu_used_pct: cpu.percent,
      mem_total: memory.totalBytes,
      mem_used: memory.usedBytes,
      mem_cache: memory.cacheBytes,
      mem_total_mib: Math.floor(memory.totalBytes / MIB),
      mem_used_mib: Math.floor(memory.usedBytes / MIB),
      disk_used: (disk.blocks - disk.bfree) * disk.bsize,
      disk_total: disk.blocks * disk.bsize,
    };
  }

  async #cpu(): Promise<{ count: number; percent: number }> {
    const [max, quota, period, stat, acct, machine] = await Promise.all([
      text(`${GROUPS}/cpu.max`),
      text(`${GROUPS}/cpu/cpu.cfs_quota_us`),
      text(`${GROUPS}/cpu/cpu.cfs_period_us`),
      text(`${GROUPS}/cpu.stat`),
      text(`${GROUPS}/cpuacct/cpuacct.usage`),
      text("/proc/stat"),
    ]);
    const count = readCpuCount(max, quota, period, availableParallelism());
    const sample = {
      usedNs: readCpuTime(stat, acct) ?? readMachineCpuTime(machine),
      atNs: Number(process.hrtime.bigint()),
    };
    const last = this.#last;
    this.#last = sample;
    // The first request has nothing to compare with.
    const percent = last === undefined ? 0 : cpuPercent(sample.usedNs - last.usedNs, sample.atNs - last.atNs, count);
    return { count, percent };
  }
}

async function memoryFiles() {
  const [limit2, usage2, stat2, limit1, usage1, stat1, meminfo] = await Promise.all([
    text(`${GROUPS}/memory.max`),
    text(`${GROUPS}/memory.current`),
    text(`${GROUPS}/memory.stat`),
    text(`${GROUPS}/memory/memory.limit_in_bytes`),
    text(`${GROUPS}/memory/memory.usage_in_bytes`),
    text(`${GROUPS}/memory/memory.stat`),
    text("/proc/meminfo"),
  ]);
  return usage2 === ""
    ? { limit: limit1, usage: usage1, stat: stat1, meminfo }
    : { limit: limit2, usage: usage2, stat: stat2, meminfo };
}

function text(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}
