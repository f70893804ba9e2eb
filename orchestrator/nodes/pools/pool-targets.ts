/**
 * Chooses which builds the nodes keep warm, and how many containers: those of the platform always, others by the demand of the last
 * hour or by what the template's owner wants. A node keeps fewer where its memory allows no more.
 */

import type { PoolTarget } from "../../../shared/agent-api/routes.ts";
import type { Build } from "../../store/builds/record.ts";

export interface Pools {
  /** Keeps containers of this build, of a template of the platform, warm without any demand. */
  keep(build: Build): void;
  /** What the owners of templates want, in place of all earlier wishes: so many at least, and 0 for none in any case. */
  wanted(wishes: readonly { readonly build: Build; readonly size: number }[]): void;
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

/** Starts are counted in spans of this length: the most in three neighbouring ones, so within ten seconds or a little more, are a burst. */
const SPAN_MS = 5_000;
/** Older starts do not count. */
export const MEMORY_MS = 3_600_000;
/** Builds with fewer starts in that time get no warm container. */
const LEAST_USES = 3;

/** Starts of a build by the number of their span; at most as many as an hour has. */
type Starts = Map<number, number>;

interface PoolDemand {
  readonly build: Build;
  readonly starts: Starts;
}

export function createPools(deps: PoolsDeps): Pools {
  const demands = new Map<string, PoolDemand>([[deps.base.id, { build: deps.base, starts: new Map() }]]);
  const kept = new Set<string>();
  /** The wishes of owners, by build. */
  const wishes = new Map<string, number>();
  const least = (id: string) => {
    const platform = id === deps.base.id ? deps.baseSize : kept.has(id) ? deps.keptSize : 0;
    return Math.max(platform, Math.min(deps.ceiling, wishes.get(id) ?? 0));
  };

  function keep(build: Build): void {
    if (!canBePooled(build)) return;
    kept.add(build.id);
    if (!demands.has(build.id)) demands.set(build.id, { build, starts: new Map() });
  }

  for (const build of deps.platform) keep(build);

  function recent({ starts }: PoolDemand): Starts {
    const oldest = spanOf(deps.now() - MEMORY_MS);
    for (const span of starts.keys()) if (span < oldest) starts.delete(span);
    return starts;
  }

  return {
    keep,
    wanted(all) {
      wishes.clear();
      for (const { build, size } of all) {
        if (!canBePooled(build)) continue;
        wishes.set(build.id, size);
        if (size > 0 && !demands.has(build.id)) demands.set(build.id, { build, starts: new Map() });
      }
    },
    used(build, at = deps.now()) {
      const demand = demands.get(build.id) ?? { build, starts: new Map() };
      demands.set(build.id, demand);
      count(demand.starts, spanOf(at), 1);
      recent(demand);
    },
    replaced(formerIds, build) {
      const former = [...formerIds];
      if (former.filter((id) => id !== build.id && kept.delete(id)).length > 0) keep(build);
      const moved = former.flatMap((id) => {
        const demand = demands.get(id);
        if (demand === undefined || id === deps.base.id || id === build.id) return [];
        demands.delete(id);
        return [...demand.starts];
      });
      if (moved.length === 0 || !canBePooled(build)) return;
      const starts = new Map(demands.get(build.id)?.starts);
      for (const [span, many] of moved) count(starts, span, many);
      demands.set(build.id, { build, starts });
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
        if (wishes.get(id) === 0) continue;
        if (home !== undefined && home !== nodeId) continue;
        const starts = recent(demand);
        const always = least(id);
        if (always === 0 && total(starts) < LEAST_USES) {
          if (starts.size === 0 && id !== deps.base.id && !kept.has(id)) demands.delete(id);
          continue;
        }
        const wanted = Math.max(always, Math.min(deps.ceiling, busiest(starts)));
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

function spanOf(at: number): number {
  return Math.floor(at / SPAN_MS);
}

function count(starts: Starts, span: number, many: number): void {
  starts.set(span, (starts.get(span) ?? 0) + many);
}

function total(starts: Starts): number {
  return [...starts.values()].reduce((sum, many) => sum + many, 0);
}

/** The most starts in three neighbouring spans. */
function busiest(starts: Starts): number {
  const at = (span: number) => starts.get(span) ?? 0;
  return [...starts.keys()].reduce((most, span) => Math.max(most, at(span) + at(span + 1) + at(span + 2)), 0);
}

function target(build: Build, size: number): PoolTarget {
  return {
    build: { templateId: build.templateId, buildId: build.id, image: build.image },
    resources: { cpuCount: build.cpuCount, memoryMB: build.memoryMB, diskSizeMB: build.diskSizeMB },
    size,
  };
}
