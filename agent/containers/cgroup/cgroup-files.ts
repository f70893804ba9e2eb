/** Parses the kernel's cgroup files to numbers. Pure. */

/** Version 1 says "no limit" with the largest number of pages. */
const NO_LIMIT_BYTES = 2 ** 60;
/** A quarter of the memory. Programs that move gigabytes keep a few megabytes in buffers. */
const SOCKET_BUFFER_SHARE = 4;

export interface Usage {
  /** Microseconds of processor time since the container began. */
  readonly cpuUs: number;
  /** Bytes, without `cache`. */
  readonly memory: number;
  /** Bytes of file cache. */
  readonly cache: number;
  /** Bytes of `cache` that are memory shared by processes: the kernel cannot reclaim them. */
  readonly shared: number;
}

export function usageUsV2(cpuStat: string): number {
  return field(cpuStat, "usage_usec");
}

export function memoryV2(current: string, stat: string): Omit<Usage, "cpuUs"> {
  return { ...split(Number(current), field(stat, "file")), shared: field(stat, "shmem") };
}

export function memoryV1(usageInBytes: string, stat: string): Omit<Usage, "cpuUs"> {
  return { ...split(Number(usageInBytes), field(stat, "total_cache")), shared: field(stat, "total_shmem") };
}

/** Processes killed for lack of memory: `memory.events` of version 2, `memory.oom_control` of version 1. */
export function memoryKills(text: string): number {
  return field(text, "oom_kill");
}

/** Bytes of socket buffers in a cgroup of version 1, beside its other memory; undefined where that has no limit. */
export function socketBufferLimit(memoryLimit: string): number | undefined {
  const bytes = Number(memoryLimit);
  return bytes > 0 && bytes < NO_LIMIT_BYTES ? Math.floor(bytes / SOCKET_BUFFER_SHARE) : undefined;
}

function split(total: number, cache: number): Pick<Usage, "memory" | "cache"> {
  return { memory: Math.max(0, total - cache), cache };
}

function field(text: string, name: string): number {
  const match = new RegExp(`^${name} (\\d+)$`, "m").exec(text);
  return Number(match?.[1] ?? 0);
}
