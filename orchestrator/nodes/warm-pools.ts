/** Which builds the nodes keep warm, and how many: the base template always, others as they are asked for. */

import type { PoolTarget } from "../../shared/agent-api/routes.ts";
import type { Build } from "../store/templates.ts";

export interface Pools {
  /** A sandbox of this build was started. */
  used(build: Build): void;
  /** Its tags mean another build now: who asked for it will ask for that one. */
  replaced(formerIds: Iterable<string>, build: Build): void;
  /** Nobody starts them any more. */
  gone(buildIds: readonly string[]): void;
  /** What that node should keep, given how many nodes share the work. */
  targets(nodeId: string, nodes: number): PoolTarget[];
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

/** Enough to see the largest pool there may be. */
const REMEMBERED = 256;

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
      if (demand.starts.length > REMEMBERED) demand.starts.shift();
    },
    replaced(formerIds, build) {
      const starts = [...formerIds].flatMap((id) => {
        const former = demands.get(id);
        if (former === undefined || id === deps.base.id || id === build.id) return [];
        demands.delete(id);
        return former.starts;
      });
      if (starts.length === 0 || !canBePooled(build)) return;
      const known = demands.get(build.id)?.starts ?? [];
      demands.set(build.id, { build, starts: [...known, ...starts].sort((a, b) => a - b).slice(-REMEMBERED) });
    },
    gone(buildIds) {
      for (const id of buildIds) if (id !== deps.base.id) demands.delete(id);
    },
    targets(nodeId, nodes) {
      const targets: PoolTarget[] = [];
      for (const [id, demand] of demands) {
        const home = demand.build.nodeId;
        if (home !== undefined && home !== nodeId) continue;
        const starts = recent(demand);
        const least = id === deps.base.id ? deps.baseSize : 0;
        if (least === 0 && starts.length < LEAST_USES) {
          if (starts.length === 0 && id !== deps.base.id) demands.delete(id);
          continue;
        }
        const wanted = Math.max(least, Math.min(deps.ceiling, busiest(starts, BURST_MS)));
        if (wanted > 0)
          targets.push(target(demand.build, Math.ceil(wanted / (home === undefined ? Math.max(1, nodes) : 1))));
      }
      return targets;
    },
  };
}

/**
 * Its sandboxes start as what a node keeps in its pool: booted from the image, or copies of a template with its memory.
 * Not from snapshots of sandboxes, and not from the disk of a snapshot.
 */
export function canBePooled({ kind, snapshotId, memory }: Pick<Build, "kind" | "snapshotId" | "memory">): boolean {
  return kind === "template" && (snapshotId === undefined || memory);
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
