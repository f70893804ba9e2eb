/** Which builds the nodes keep warm, and how many: the base template always, others as they are asked for. */

import type { PoolTarget } from "../shared/agent-api.ts";
import type { Build } from "./store/templates.ts";

export interface Pools {
  /** A sandbox of this build was started. */
  used(build: Build): void;
  /** What one node should keep, given how many nodes share the work. */
  targets(nodes: number): PoolTarget[];
}

export interface PoolsDeps {
  readonly base: Build;
  readonly baseSize: number;
  readonly ceiling: number;
  readonly now: () => number;
}

/** Starts within this span are wanted warm at once the next time. */
const BURST_MS = 10_000;
/** Demand that is older counts no more. */
const MEMORY_MS = 300_000;
/** Builds with fewer starts in that time are not worth a warm container. */
const LEAST_USES = 3;

interface Demand {
  readonly build: Build;
  /** Times of recent starts, oldest first. */
  readonly starts: number[];
}

export function createPools(deps: PoolsDeps): Pools {
  const demands = new Map<string, Demand>([[deps.base.id, { build: deps.base, starts: [] }]]);

  function recent({ starts }: Demand): readonly number[] {
    const oldest = deps.now() - MEMORY_MS;
    while ((starts[0] ?? oldest) < oldest) starts.shift();
    return starts;
  }

  return {
    used(build) {
      const demand = demands.get(build.id) ?? { build, starts: [] };
      demands.set(build.id, demand);
      demand.starts.push(deps.now());
      // Enough to see the largest pool there may be.
      if (demand.starts.length > 256) demand.starts.shift();
    },
    targets(nodes) {
      const targets: PoolTarget[] = [];
      for (const [id, demand] of demands) {
        const starts = recent(demand);
        const least = id === deps.base.id ? deps.baseSize : 0;
        if (least === 0 && starts.length < LEAST_USES) {
          if (starts.length === 0 && id !== deps.base.id) demands.delete(id);
          continue;
        }
        const wanted = Math.max(least, Math.min(deps.ceiling, busiest(starts, BURST_MS)));
        if (wanted > 0) targets.push(target(demand.build, Math.ceil(wanted / Math.max(1, nodes))));
      }
      return targets;
    },
  };
}

/** Most starts within any span of that length. `starts` ascending. */
export function busiest(starts: readonly number[], spanMs: number): number {
  let most = 0;
  let first = 0;
  for (const [index, at] of starts.entries()) {
    while (at - (starts[first] ?? at) > spanMs) first++;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

function target(build: Build, size: number): PoolTarget {
  return {
    build: { templateId: build.templateId, buildId: build.id, image: build.image },
    resources: { cpuCount: build.cpuCount, memoryMB: build.memoryMB, diskSizeMB: build.diskSizeMB },
    size,
  };
}
