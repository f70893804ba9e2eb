/** Decides what the node drops next while its disk is short: what no record names, then what it can make again, the cheapest first. Pure. */

import type { DiskLevel } from "./space.ts";

/** What a node has beside sandboxes, snapshots in use and builds, the least useful first in each list. */
export interface Remakable {
  /** Held snapshots, which no record names: they would be deleted later in any case. */
  readonly held: readonly { readonly id: string }[];
  /** Ready containers of the warm pool, which belong to no sandbox. */
  readonly pool: readonly { readonly id: string }[];
  /** Containers of paused sandboxes, by snapshot. `ran`: it holds the sandbox's newest state, which is not stored. */
  readonly frozen: readonly { readonly id: string; readonly ran: boolean }[];
  /** Cached layers of builds, by key. `inUse`: a build under way may need it. */
  readonly layers: readonly { readonly id: string; readonly inUse: boolean }[];
}

export interface Drop {
  readonly of: keyof Remakable;
  readonly ids: readonly string[];
}

/**
 * All of one kind, because the next check shows whether that was enough. Undefined: there is room, or nothing is left
 * that can be made again. `tried`: could not be dropped, or is being dropped.
 */
export function planDrop(level: DiskLevel, there: Remakable, tried: ReadonlySet<string>): Drop | undefined {
  if (level.is !== "short") return undefined;
  const { held, pool, frozen, layers } = there;
  const inOrder = [
    { of: "held" as const, what: held },
    { of: "pool" as const, what: pool },
    { of: "frozen" as const, what: frozen.filter(({ ran }) => !ran) },
    { of: "layers" as const, what: layers.filter(({ inUse }) => !inUse) },
  ];
  return inOrder
    .map(({ of, what }) => ({ of, ids: what.map(({ id }) => id).filter((id) => !tried.has(id)) }))
    .find(({ ids }) => ids.length > 0);
}
