/** Decides the warm pool's next step from the targets and its contents. Pure. */

import type { PoolTarget, Resources } from "../../../shared/agent-api/routes.ts";
import { type Flavour, flavourKey } from "../../containers/live-container.ts";

export interface PoolView {
  readonly targets: readonly PoolTarget[];
  /** Runtime of new containers. */
  readonly runtime: string;
  /** Ready containers of each flavour, by key. */
  readonly ready: ReadonlyMap<string, number>;
  /** Keys of flavours that just failed to start: not tried yet. */
  readonly resting: ReadonlySet<string>;
  /** False while the node makes room on its disk. */
  readonly filling: boolean;
  /** Bytes that the machine could give to new processes. */
  readonly freeMemory: number;
  /** Bytes that must stay free. */
  readonly reservedMemory: number;
}

export interface PoolStep {
  /** The flavour to start one container of. */
  readonly boot: Flavour | undefined;
  /** How many to remove, by key: no longer wanted, of an old runtime, or memory is short. */
  readonly drop: ReadonlyMap<string, number>;
}

/** Expected memory of an idle entry: envd, the shim, page tables. */
const ENTRY_BYTES = 48 * 1024 * 1024;

export function planPool(view: PoolView): PoolStep {
  const { targets, runtime, ready, resting, filling, freeMemory, reservedMemory } = view;
  const wanted = new Map<string, { flavour: Flavour; size: number }>();
  for (const { build, resources, size } of targets) {
    const flavour = { build, resources, runtime };
    wanted.set(flavourKey(flavour), { flavour, size });
  }
  const drop = new Map<string, number>();
  for (const [key, count] of ready) {
    const surplus = count - (wanted.get(key)?.size ?? 0);
    if (surplus > 0) drop.set(key, surplus);
  }
  const room = freeMemory - reservedMemory;
  if (room < 0 && drop.size === 0) {
    const fullest = [...ready].filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a)[0];
    if (fullest !== undefined) drop.set(fullest[0], 1);
  }
  if (!filling || room < ENTRY_BYTES) return { boot: undefined, drop };
  // The flavour that is emptiest relative to its target comes first.
  const missing = [...wanted]
    .filter(([key]) => !resting.has(key))
    .map(([key, { flavour, size }]) => ({ flavour, filled: (ready.get(key) ?? 0) / size }))
    .filter(({ filled }) => filled < 1)
    .sort((a, b) => a.filled - b.filled);
  return { boot: missing[0]?.flavour, drop };
}

/** Processors and memory promised to these sandboxes, as the heartbeat reports them. */
export function promised(all: Iterable<Resources>): { cpu: number; memoryBytes: number } {
  let cpu = 0;
  let memoryBytes = 0;
  for (const { cpuCount, memoryMB } of all) {
    cpu += cpuCount;
    memoryBytes += memoryMB * 1024 * 1024;
  }
  return { cpu, memoryBytes };
}
