/** Decides the warm pool's next step from the targets and its contents. Pure. */

import type { PoolTarget, Resources } from "../../../shared/agent-api/routes.ts";
import { type Flavour, flavourKey } from "../../containers/live-container.ts";

export interface PoolView {
  readonly targets: readonly PoolTarget[];
  /** Runtime of new containers. */
  readonly runtime: string;
  /** Ready containers of each flavour, by key. */
  readonly ready: ReadonlyMap<string, number>;
  /** Containers that are being started, by key. */
  readonly starting: ReadonlyMap<string, number>;
  /** Memory of a ready container, bytes, by key. */
  readonly bytes: Pick<ReadonlyMap<string, number>, "get">;
  /** Bytes that all of them may take together. */
  readonly memoryBound: number;
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
  /** The flavour to start one container of, once the others are removed. */
  readonly boot: Flavour | undefined;
  /** How much of what is asked for of that flavour is there, 0 to 1: the less, the more urgent. */
  readonly filled: number;
  /** How many to remove, by key: no longer wanted, of an old runtime, memory is short, or another flavour has too few. */
  readonly drop: ReadonlyMap<string, number>;
  /** More are asked for than the memory bound allows. */
  readonly full: boolean;
}

/** Expected memory of an entry before one was measured: envd, the shim, page tables. */
export const ENTRY_BYTES = 48 * 1024 * 1024;
/** How far measurements may go above the bound before an entry is removed for it: what is measured differs a little each time. */
const SLACK = 1.1;

interface Share {
  readonly key: string;
  readonly flavour: Flavour;
  readonly size: number;
  /** Containers that are ready or being started. */
  readonly count: number;
  readonly bytes: number;
}

export function planPool(view: PoolView): PoolStep {
  const { ready, resting, filling, freeMemory, reservedMemory, memoryBound } = view;
  const shares = sharesOf(view);
  const drop = new Map<string, number>();
  for (const [key, count] of ready) {
    const surplus = count - (shares.get(key)?.size ?? 0);
    if (surplus > 0) drop.set(key, surplus);
  }
  const used = usedBytes(view, drop);
  const room = freeMemory - reservedMemory;
  if ((room < 0 || used > memoryBound * SLACK) && drop.size === 0) {
    const fullest = [...ready].filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a)[0];
    if (fullest !== undefined) drop.set(fullest[0], 1);
  }
  if (!filling || room < ENTRY_BYTES) return { boot: undefined, filled: 1, drop, full: false };
  const missing = [...shares.values()]
    .filter(({ key, count, size }) => !resting.has(key) && count < size)
    .sort((a, b) => filled(a) - filled(b));
  for (const share of missing) {
    const boot = { boot: share.flavour, filled: filled(share) };
    if (used + share.bytes <= memoryBound) return { ...boot, drop, full: false };
    const donated =
      drop.size === 0 ? donation(share, [...shares.values()], { ...view, over: used - memoryBound }) : undefined;
    if (donated !== undefined) return { ...boot, drop: donated, full: true };
  }
  return { boot: undefined, filled: 1, drop, full: missing.length > 0 };
}

function sharesOf({ targets, runtime, ready, starting, bytes }: PoolView): Map<string, Share> {
  const shares = new Map<string, Share>();
  for (const { build, resources, size } of targets) {
    const flavour = { build, resources, runtime };
    const key = flavourKey(flavour);
    const count = (ready.get(key) ?? 0) + (starting.get(key) ?? 0);
    shares.set(key, { key, flavour, size, count, bytes: bytes.get(key) ?? ENTRY_BYTES });
  }
  return shares;
}

/** Of everything that is not dropped. */
function usedBytes({ ready, starting, bytes }: PoolView, drop: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const key of new Set([...ready.keys(), ...starting.keys()])) {
    const count = (ready.get(key) ?? 0) - (drop.get(key) ?? 0) + (starting.get(key) ?? 0);
    sum += count * (bytes.get(key) ?? ENTRY_BYTES);
  }
  return sum;
}

/**
 * What the fullest flavour gives up so that one more container of this one fits. Only as long as it stays as full as this one becomes:
 * so each exchange evens the pool out, and none is ever undone.
 */
function donation(
  to: Share,
  shares: readonly Share[],
  { ready, over }: Pick<PoolView, "ready"> & { readonly over: number },
): ReadonlyMap<string, number> | undefined {
  const from = shares.filter(({ key }) => key !== to.key).sort((a, b) => filled(b) - filled(a))[0];
  if (from === undefined || from.bytes <= 0) return undefined;
  const count = Math.ceil((over + to.bytes) / from.bytes);
  if (count > (ready.get(from.key) ?? 0)) return undefined;
  return (from.count - count) / from.size >= (to.count + 1) / to.size ? new Map([[from.key, count]]) : undefined;
}

/** How much of what is asked for is there. */
function filled({ count, size }: Share): number {
  return count / size;
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
