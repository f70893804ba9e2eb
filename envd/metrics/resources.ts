/** Pure: parses the kernel's files about CPU and memory. Unreadable files count as empty. */

export interface Memory {
  readonly totalBytes: number;
  /** Without memory that the kernel can drop at once. */
  readonly usedBytes: number;
  readonly cacheBytes: number;
}

/** Texts of the control group's files (either version) and of /proc/meminfo; empty where there is none. */
export interface MemoryFiles {
  readonly limit: string;
  readonly usage: string;
  readonly stat: string;
  readonly meminfo: string;
}

/** Memory of the control group where it has a limit, of the machine otherwise. */
export function readMemory({ limit, usage, stat, meminfo }: MemoryFiles): Memory {
  const machine = fields(meminfo, ":");
  const total = (machine.get("MemTotal") ?? 0) * 1024;
  const limitBytes = /^\d+$/.test(limit.trim()) ? Number(limit) : Number.POSITIVE_INFINITY;
  const usageBytes = Number(usage);
  if (usage.trim() === "" || !(usageBytes >= 0)) return machineMemory(machine, total);
  const counters = fields(stat, " ");
  // `file` of version 2, `total_cache` of version 1. Files in memory (/dev/shm) count in it, but cannot be dropped.
  const fileBytes = counters.get("file") ?? counters.get("total_cache") ?? counters.get("cache") ?? 0;
  const sharedBytes = counters.get("total_shmem") ?? counters.get("shmem") ?? 0;
  const cacheBytes = Math.max(0, fileBytes - sharedBytes);
  return { totalBytes: Math.min(limitBytes, total), usedBytes: Math.max(0, usageBytes - cacheBytes), cacheBytes };
}

function machineMemory(machine: ReadonlyMap<string, number>, totalBytes: number): Memory {
  const cacheBytes = Math.max(0, (machine.get("Cached") ?? 0) - (machine.get("Shmem") ?? 0)) * 1024;
  const availableBytes = (machine.get("MemAvailable") ?? 0) * 1024;
  return { totalBytes, usedBytes: Math.max(0, totalBytes - availableBytes), cacheBytes };
}

function fields(text: string, separator: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const line of text.split("\n")) {
    const at = line.indexOf(separator);
    if (at > 0) found.set(line.slice(0, at), Number.parseInt(line.slice(at + 1), 10));
  }
  return found;
}

/** CPUs this group may use: `cpu.max` (version 2, "quota period") or quota and period (version 1), else all there are. */
export function readCpuCount(max: string, quota: string, period: string, online: number): number {
  const [first = "", second = ""] = max.trim() === "" ? [quota.trim(), period.trim()] : max.trim().split(/\s+/);
  const allowed = Number(first) / Number(second);
  return Number.isFinite(allowed) && allowed > 0 ? Math.min(allowed, online) : online;
}

/** Nanoseconds of CPU used: `cpu.stat` (version 2) or `cpuacct.usage` (version 1); undefined where there is neither. */
export function readCpuTime(stat: string, acct: string): number | undefined {
  const microseconds = fields(stat, " ").get("usage_usec");
  if (microseconds !== undefined && !Number.isNaN(microseconds)) return microseconds * 1_000;
  return /^\d+$/.test(acct.trim()) ? Number(acct) : undefined;
}

/** Nanoseconds the whole machine was busy, from /proc/stat with its ticks of 10 ms. */
export function readMachineCpuTime(stat: string): number {
  const [label, ...ticks] = (stat.split("\n", 1)[0] ?? "").trim().split(/\s+/);
  if (label !== "cpu") return 0;
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = ticks.map(Number);
  return (user + nice + system + irq + softirq + steal) * 10_000_000;
}

/** Percent of the CPUs allowed, between two moments. */
export function cpuPercent(usedNs: number, elapsedNs: number, cpuCount: number): number {
  if (elapsedNs <= 0 || cpuCount <= 0) return 0;
  return Math.round(Math.min(100, Math.max(0, (usedNs / elapsedNs / cpuCount) * 100)) * 100) / 100;
}
