/** Writers to the node's disk, as the reserve sees them: running sandboxes, and containers of builds. */

import { readFileSync } from "node:fs";
import type { LiveContainer } from "../containers/live-container.ts";
import type { RunCommand } from "../host/command.ts";
import type { Held } from "./pressure.ts";

const MIB = 1024 ** 2;
const WALK_LIMIT_MS = 2_000;

export interface HostGrowth {
  /** Bytes that a process and the children it has waited for have written to disks since they began. */
  readonly written: (pid: number) => number;
  /** Number of files in a directory tree; undefined when counting takes too long. */
  readonly countFiles: (directory: string) => Promise<number | undefined>;
}

export function hostGrowth(run: RunCommand): HostGrowth {
  return {
    written(pid) {
      try {
        const text = readFileSync(`/proc/${pid}/io`, "utf8");
        const field = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, "m").exec(text)?.[1] ?? 0);
        return Math.max(0, field("write_bytes") - field("cancelled_write_bytes"));
      } catch {
        // The process has just ended.
        return 0;
      }
    },
    async countFiles(directory) {
      try {
        const text = await run("nice", ["-n", "19", "du", "-sx", "--inodes", "--", directory], {
          timeoutMs: WALK_LIMIT_MS,
        });
        const count = Number(text.split("\t", 1)[0]);
        return Number.isSafeInteger(count) ? count : undefined;
      } catch {
        return undefined;
      }
    },
  };
}

export interface GrowerDeps {
  readonly growth: HostGrowth;
  readonly diskUsage: (directory: string) => Promise<number | undefined>;
  /** Bytes of its writable layer as last measured; 0 before the first measurement. */
  readonly lastUsed: (id: string) => number;
}

export interface Holding {
  /** Id of its execution or build. */
  readonly id: string;
  readonly container: LiveContainer;
  /** If present, called instead of freezing the container. */
  readonly hold?: () => void;
  /** If present, called instead of thawing the container. */
  readonly release?: () => void;
  readonly end: () => Promise<void>;
}

export function growerOf({ id, container, hold, release, end }: Holding, deps: GrowerDeps): Held {
  const { cgroup, upperDirectory, resources } = container;
  const tried = (read: () => number): number => {
    try {
      return read();
    } catch {
      // The cgroup is gone: the container has just ended.
      return 0;
    }
  };
  return {
    id,
    written: () => tried(() => cgroup.processes().reduce((sum, pid) => sum + deps.growth.written(pid), 0)),
    cpuUs: () => tried(() => cgroup.usage().cpuUs),
    usedBefore: () => deps.lastUsed(id) || undefined,
    over: () => (resources.diskSizeMB === 0 ? 0 : Math.max(0, deps.lastUsed(id) - resources.diskSizeMB * MIB)),
    used: async () => (upperDirectory === undefined ? undefined : deps.diskUsage(upperDirectory)),
    files: async () => (upperDirectory === undefined ? 0 : deps.growth.countFiles(upperDirectory)),
    hold: async () => (hold === undefined ? cgroup.freeze() : hold()),
    release: release ?? (() => cgroup.thaw()),
    end,
  };
}
