/** Counts processes of sandboxes that the kernel killed because their sandbox had used up its memory, and logs them. */

import { LRUCache } from "lru-cache";
import type { Log } from "../../shared/program/log.ts";
import type { Sandbox } from "./sandbox.ts";

/** More than a node has containers: a frozen one keeps its counter while it is not looked at. */
const MOST_CONTAINERS = 10_000;

export interface MemoryKills {
  /** Kills since the start of this agent. */
  readonly total: number;
  /** Reads the kernel's counter of a sandbox and logs new kills. */
  look(sandbox: Sandbox): void;
}

/** @param since start of this agent: it cannot know which kills of older sandboxes an earlier agent has counted */
export function createMemoryKills({ since, log }: { readonly since: number; readonly log: Log }): MemoryKills {
  const seen = new LRUCache<string, number>({ max: MOST_CONTAINERS });
  const state = { total: 0 };
  return {
    get total() {
      return state.total;
    },
    look({ executionId, sandboxId, startedAt, container: { id, cgroup, resources } }) {
      const kills = tryCount(cgroup);
      if (kills === undefined) return;
      const before = seen.get(id) ?? (startedAt < since ? kills : 0);
      seen.set(id, kills);
      if (kills <= before) return;
      state.total += kills - before;
      log.warn(
        { executionId, sandboxId, kills: kills - before, limitMiB: resources.memoryMB },
        "the kernel killed processes of a sandbox: out of memory",
      );
    },
  };
}

function tryCount(cgroup: { memoryKills(): number }): number | undefined {
  try {
    return cgroup.memoryKills();
  } catch {
    // The sandbox has just ended, which another part handles.
    return undefined;
  }
}
