/**
 * The limits of a sandbox's size: as Docker takes them, and as the files of a cgroup. `setLimits` is the only place that
 * changes the size of a container that runs.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { Resources } from "../../../shared/agent-api/routes.ts";
import type { Usage } from "./cgroup-files.ts";

/** The part of a sandbox's resources that can change while it runs. */
export interface Size extends Pick<Resources, "cpuCount" | "memoryMB"> {
  /** The processors it may use, as the kernel writes lists; absent: those it has. */
  readonly cpus?: string | undefined;
}

/** Names and units of Docker's API. */
export interface DockerLimits {
  readonly Memory: number;
  /** Memory and swap together: equal to `Memory`, so that a sandbox has no swap. */
  readonly MemorySwap: number;
  readonly NanoCpus: number;
}

/** Where the files of one container's cgroup are. Version 1 has a directory for each controller. */
export interface LimitDirectories {
  readonly version: 1 | 2;
  readonly memory: string;
  readonly cpu: string;
  readonly cpuset: string;
}

/** What the files say before the change. */
export interface LimitsBefore {
  readonly memoryBytes: number;
  /** Version 1: whether the kernel limits memory and swap together, in a file of its own. */
  readonly swap: boolean;
  /** Microseconds in which the quota of CPU time counts; it stays as it is. */
  readonly periodUs: number;
}

const MIB = 1024 * 1024;
const NANO = 1_000_000_000;
/** Memory that a sandbox needs beyond what it uses, for its first work. */
const HEADROOM_BYTES = 32 * MIB;

export function dockerLimits({ cpuCount, memoryMB }: Size): DockerLimits {
  const memory = memoryMB * MIB;
  return { Memory: memory, MemorySwap: memory, NanoCpus: cpuCount * NANO };
}

export function isSize(limits: DockerLimits, size: Size): boolean {
  const { Memory, MemorySwap, NanoCpus } = dockerLimits(size);
  return limits.Memory === Memory && limits.MemorySwap === MemorySwap && limits.NanoCpus === NanoCpus;
}

export function sameSize(one: Size, other: Size): boolean {
  return one.cpuCount === other.cpuCount && one.memoryMB === other.memoryMB;
}

/**
 * Whether a container with this use can get the size. The kernel can drop its file cache, but not the memory that processes
 * share, which counts as cache.
 */
export function fits({ memory, shared }: Pick<Usage, "memory" | "shared">, { memoryMB }: Size): boolean {
  return leastMemoryMb(memory + shared) <= memoryMB;
}

/** The smallest size, MiB, for a sandbox that uses this much memory. */
export function leastMemoryMb(bytes: number): number {
  return Math.ceil((bytes + HEADROOM_BYTES) / MIB);
}

/**
 * Sets the size of a container, frozen or running. It takes less than a millisecond; Docker does not know the new size.
 * When it throws, the container may have a part of the new limits and must not be used.
 */
export function setLimits(at: LimitDirectories, size: Size): void {
  for (const [file, value] of limitWrites(at, size, readLimits(at))) writeFileSync(file, value);
}

/** Files and values, in an order in which the kernel takes each of them. Pure. */
export function limitWrites(
  at: LimitDirectories,
  size: Size,
  before: LimitsBefore,
): readonly (readonly [string, string])[] {
  const bytes = size.memoryMB * MIB;
  const memory = String(bytes);
  const quota = String(size.cpuCount * before.periodUs);
  const cpus = size.cpus === undefined ? [] : [[`${at.cpuset}/cpuset.cpus`, size.cpus] as const];
  if (at.version === 2) {
    return [...cpus, [`${at.memory}/memory.max`, memory], [`${at.cpu}/cpu.max`, `${quota} ${before.periodUs}`]];
  }
  const ram = [`${at.memory}/memory.limit_in_bytes`, memory] as const;
  const withSwap = [`${at.memory}/memory.memsw.limit_in_bytes`, memory] as const;
  // The kernel refuses a limit of memory that is above the one of memory and swap together.
  const raised = bytes > before.memoryBytes ? [withSwap, ram] : [ram, withSwap];
  return [...cpus, ...(before.swap ? raised : [ram]), [`${at.cpu}/cpu.cfs_quota_us`, quota]];
}

function readLimits({ version, memory, cpu }: LimitDirectories): LimitsBefore {
  if (version === 2) {
    const period = read(`${cpu}/cpu.max`).split(" ")[1];
    // `max`: no limit so far.
    return { memoryBytes: Number(read(`${memory}/memory.max`)) || Infinity, swap: false, periodUs: Number(period) };
  }
  return {
    memoryBytes: Number(read(`${memory}/memory.limit_in_bytes`)),
    swap: existsSync(`${memory}/memory.memsw.limit_in_bytes`),
    periodUs: Number(read(`${cpu}/cpu.cfs_period_us`)),
  };
}

function read(file: string): string {
  return readFileSync(file, "utf8").trim();
}
