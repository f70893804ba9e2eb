/** Chooses which builds the nodes keep warm, and how many containers: those of the platform always, others by demand. */

import type { PoolTarget } from "../../shared/agent-api/routes.ts";
import type { Build } from "../store/builds/record.ts";

export interface Pools {
  /** Keeps containers of this build, of a template of the platform, warm without any demand. */
  keep(build: Build): void;
  /** Counts a start of a sandbox of this build. @param at its time; absent: now */
  used(build: Build, at?: number): void;
  /** The tags moved to another build: demand for the old build counts for the new one. */
  replaced(formerIds: Iterable<string>, build: Build): void;
  /** The builds that are kept warm, or were started not long ago. */
  builds(): Build[];
  /** Forgets builds that no sandbox can start from any more. */
  gone(buildIds: readonly string[]): void;
  /** The containers that the node should keep warm, given the number of nodes that share the load. */
  targets(nodeId: string, nodes: number): PoolTarget[];
}

export interface PoolsDeps {
  readonly base: Build;
  /** The other builds of templates of the platform. */
  readonly platform: readonly Build[];
  readonly baseSize: number;
  /** Containers of each build that is kept warm beside base. */
  readonly keptSize: number;
  readonly ceiling: number;
  readonly now: () => number;
}

/** Span of a burst: nodes keep as many containers warm as sandboxes started within one. */
const BURST_MS = 10_000;
/** Older starts do not count. */
export const MEMORY_MS = 300_000;
/** Builds with fewer starts in that time get no warm container. */
const LEAST_USES = 3;

/** Most start times remembered for a build: enough for the largest possible pool. */
const REMEMBERED = 256;

interface PoolDemand {
  readonly build: Build;
  /** Times of recent starts, oldest first. */
  readonly starts: number[];
}

export function createPools(deps: PoolsDeps): Pools {
  const demands = new Map<string, PoolDemand>([[deps.base.id, { build: deps.base, starts: [] }]]);
  const kept = new Set<string>();
  const least = (id: string) => (id === deps.base.id ? deps.baseSize : kept.has(id) ? deps.keptSize : 0);

  function keep(build: Build): void {
    if (!canBePooled(build)) return;
    kept.add(build.id);
    if (!demands.has(build.id)) demands.set(build.id, { build, starts: [] });
  }

  for (const build of deps.platform) keep(build);

  function recent({ starts }: PoolDemand): readonly number[] {
    const oldest = deps.now() - MEMORY_MS;
    while ((starts[0] ?? oldest) < oldest) starts.shift();
    return starts;
  }

  return {
    keep,
    used(build, at = deps.now()) {
      const demand = demands.get(build.id) ?? { build, starts: [] };
      demands.set(build.id, demand);
      demand.starts.push(at);
      if (demand.starts.length > REMEMBERED) demand.starts.shift();
    },
    replaced(formerIds, build) {
      const former = [...formerIds];
      if (former.filter((id) => id !== build.id && kept.delete(id)).length > 0) keep(build);
      const starts = former.flatMap((id) => {
        const demand = demands.get(id);
        if (demand === undefined || id === deps.base.id || id === build.id) return [];
        demands.delete(id);
        return demand.starts;
      });
      if (starts.length === 0 || !canBePooled(build)) return;
      const known = demands.get(build.id)?.starts ?? [];
      demands.set(build.id, { build, starts: [...known, ...starts].sort((a, b) => a - b).slice(-REMEMBERED) });
    },
    builds: () => [...demands.values()].map(({ build }) => build),
    gone(buildIds) {
      for (const id of buildIds) {
        kept.delete(id);
        if (id !== deps.base.id) demands.delete(id);
      }
    },
    targets(nodeId, nodes) {
      const targets: PoolTarget[] = [];
      for (const [id, demand] of demands) {
        const home = demand.build.nodeId;
        if (home !== undefined && home !== nodeId) continue;
        const starts = recent(demand);
        const always = least(id);
        if (always === 0 && starts.length < LEAST_USES) {
          if (starts.length === 0 && id !== deps.base.id && !kept.has(id)) demands.delete(id);
          continue;
        }
        const wanted = Math.max(always, Math.min(deps.ceiling, busiest(starts, BURST_MS)));
        if (wanted > 0)
          targets.push(target(demand.build, Math.ceil(wanted / (home === undefined ? Math.max(1, nodes) : 1))));
      }
      return targets;
    },
  };
}

/**
 * Whether a build's sandboxes can start from a node's pool: booted from an image or copied from a template's memory.
 * Snapshots of sandboxes, and the disk of a snapshot, cannot.
 */
export function canBePooled({ kind, snapshotId, memory }: Pick<Build, "kind" | "snapshotId" | "memory">): boolean {
  return kind === "template" && (snapshotId === undefined || memory);
}

/** The largest number of starts within any `spanMs`. `starts` is in ascending order. */
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
