/** Measures each sandbox's use: a sample soon after its start and then regularly, from the kernel's counters. */

import type { ExecutionUse, MetricSample } from "../../shared/agent-api/routes.ts";
import type { Log } from "../../shared/program/log.ts";
import { type Loop, loop } from "../../shared/program/loop.ts";
import type { Usage } from "../containers/cgroup/cgroup-files.ts";
import type { Traffic } from "../network/kernel/traffic.ts";
import type { SampleStore } from "../store/samples.ts";
import type { MemoryKills } from "./memory-kills.ts";
import type { Sandbox } from "./sandbox.ts";

const MIB = 1024 * 1024;
/** Delay after a start: reading the kernel's counters takes two milliseconds, and the first command comes first. */
const FIRST_AFTER_MS = 150;
/** CPU time since the last disk measurement below which a sandbox cannot have written much. */
const DISK_ACTIVITY_US = 5_000;
/** A few in each round, least recently measured first, because a measurement walks the writable layer. */
const DISK_PER_ROUND = 4;

export interface UsageSamplingDeps {
  readonly running: () => readonly Sandbox[];
  readonly store: SampleStore;
  /** Bytes of a directory tree; undefined when it takes too long. */
  readonly diskUsage: (directory: string) => Promise<number | undefined>;
  readonly memoryKills: Pick<MemoryKills, "look">;
  /** Counters of a sandbox's link. */
  readonly traffic: (link: string) => Traffic;
  readonly everyMs: number;
  readonly now: () => number;
  readonly log: Log;
}

/** What the sandbox has used when the measurement began, and at its last one. */
interface Counted {
  readonly cpuUs: number;
  readonly traffic: Traffic;
}

interface SandboxUsage {
  readonly began: Counted;
  counted: Counted;
  at: number;
  cpuUs: number;
  sample: MetricSample | undefined;
  disk: number;
  /** Processor time when the disk was measured. */
  diskCpuUs: number;
  diskAt: number;
  overLimit: boolean;
}

export interface UsageSampling {
  /** Starts the rounds. */
  start(): void;
  /** Takes the first sample of a sandbox soon. */
  started(sandbox: Sandbox): void;
  latest(executionId: string): MetricSample | undefined;
  /** The use since the first sample; undefined before that. */
  use(executionId: string): ExecutionUse | undefined;
  stop(): Promise<void>;
}

export function createUsageSampling({
  running,
  store,
  diskUsage,
  memoryKills,
  traffic,
  everyMs,
  now,
  log,
}: UsageSamplingDeps): UsageSampling {
  const watched = new Map<string, SandboxUsage>();

  const starting = new Set<NodeJS.Timeout>();

  const measure = ({ container }: Sandbox, seen: SandboxUsage): MetricSample | undefined => {
    const usage = tryUsage(container.cgroup);
    if (usage === undefined) return undefined;
    const at = now();
    const sample = toSample({ at, usage, seen, resources: container.resources });
    const counted = { cpuUs: usage.cpuUs, traffic: traffic(container.slot.link) };
    Object.assign(seen, { at, cpuUs: usage.cpuUs, sample, counted });
    return sample;
  };

  const first = ({ executionId, container }: Sandbox) => {
    const usage = tryUsage(container.cgroup);
    if (usage === undefined || watched.has(executionId)) return;
    const { cpuUs } = usage;
    const at = now();
    // Counts from here, because use before the container had an owner is not the owner's.
    const began = { cpuUs, traffic: traffic(container.slot.link) };
    const seen = { at, cpuUs, disk: 0, diskCpuUs: 0, diskAt: 0, overLimit: false, began, counted: began };
    const sample = toSample({ at, usage, seen, resources: container.resources });
    watched.set(executionId, { ...seen, sample });
    store.add(new Map([[executionId, sample]]));
  };

  const started = (sandbox: Sandbox) => {
    const timer = setTimeout(() => {
      starting.delete(timer);
      if (!running().some(({ executionId }) => executionId === sandbox.executionId)) return;
      try {
        first(sandbox);
        memoryKills.look(sandbox);
      } catch (error) {
        log.warn({ err: error, executionId: sandbox.executionId }, "could not take the first sample of a sandbox");
      }
    }, FIRST_AFTER_MS);
    starting.add(timer.unref());
  };

  const measureDisks = async (sandboxes: readonly Sandbox[]) => {
    const due = sandboxes
      .map((sandbox) => ({ sandbox, seen: watched.get(sandbox.executionId) }))
      .filter(({ seen }) => seen !== undefined && seen.cpuUs - seen.diskCpuUs > DISK_ACTIVITY_US)
      .sort((a, b) => (a.seen?.diskAt ?? 0) - (b.seen?.diskAt ?? 0))
      .slice(0, DISK_PER_ROUND);
    for (const { sandbox, seen } of due) {
      const { upperDirectory, resources } = sandbox.container;
      if (seen === undefined || upperDirectory === undefined) continue;
      Object.assign(seen, { diskCpuUs: seen.cpuUs, diskAt: now() });
      seen.disk = (await diskUsage(upperDirectory)) ?? seen.disk;
      const over = resources.diskSizeMB > 0 && seen.disk > resources.diskSizeMB * MIB;
      if (over && !seen.overLimit)
        log.warn(
          { sandboxId: sandbox.sandboxId, bytes: seen.disk },
          "a sandbox's disk is larger than its limit, which this node cannot enforce",
        );
      seen.overLimit = over;
    }
  };

  const round = async () => {
    const sandboxes = running();
    const alive = new Set(sandboxes.map(({ executionId }) => executionId));
    for (const executionId of watched.keys()) if (!alive.has(executionId)) watched.delete(executionId);
    await measureDisks(sandboxes);
    const samples = new Map<string, MetricSample>();
    for (const sandbox of sandboxes) {
      memoryKills.look(sandbox);
      const seen = watched.get(sandbox.executionId);
      if (seen === undefined) first(sandbox);
      // Skips a sandbox that has just begun: its share of so short a time means nothing.
      else if (now() - seen.at >= everyMs / 2) {
        const sample = measure(sandbox, seen);
        if (sample !== undefined) samples.set(sandbox.executionId, sample);
      }
    }
    if (samples.size > 0) store.add(samples);
  };
  let rounds: Loop | undefined;

  return {
    start: () => void (rounds ??= loop({ name: "usage samples", everyMs, log }, round)),
    started,
    latest: (executionId) => watched.get(executionId)?.sample,
    use(executionId) {
      const seen = watched.get(executionId);
      return seen === undefined ? undefined : toUse(seen);
    },
    async stop() {
      for (const timer of starting) clearTimeout(timer);
      await rounds?.stop();
    },
  };
}

function tryUsage(cgroup: { usage(): Usage }): Usage | undefined {
  try {
    return cgroup.usage();
  } catch {
    // The sandbox has just ended, which another part handles.
    return undefined;
  }
}

function toUse({ began, counted, sample, disk }: SandboxUsage): ExecutionUse {
  const since = (key: keyof Traffic) => Math.max(0, counted.traffic[key] - began.traffic[key]);
  return {
    cpuMs: Math.max(0, Math.floor((counted.cpuUs - began.cpuUs) / 1_000)),
    sentBytes: since("sentBytes"),
    receivedBytes: since("receivedBytes"),
    memoryBytes: sample?.memUsed ?? 0,
    diskBytes: disk,
  };
}

interface Measured {
  readonly at: number;
  readonly usage: Usage;
  readonly seen: Pick<SandboxUsage, "at" | "cpuUs" | "disk">;
  readonly resources: Sandbox["container"]["resources"];
}

function toSample({ at, usage, seen, resources }: Measured): MetricSample {
  const elapsedUs = (at - seen.at) * 1_000;
  // A share of all its processors together, as in the public metric: 100 means that all are busy.
  const share = elapsedUs <= 0 ? 0 : (usage.cpuUs - seen.cpuUs) / (elapsedUs * resources.cpuCount);
  return {
    at,
    cpuCount: resources.cpuCount,
    cpuUsedPct: Math.round(Math.min(Math.max(share, 0), 1) * 10_000) / 100,
    // Files in memory (/dev/shm) cannot be dropped, though the kernel counts them as cache.
    memUsed: usage.memory + usage.shared,
    memTotal: resources.memoryMB * MIB,
    memCache: Math.max(0, usage.cache - usage.shared),
    diskUsed: seen.disk,
    diskTotal: resources.diskSizeMB * MIB,
  };
}
