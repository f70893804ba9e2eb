/**
 * Started, warmed up and frozen containers, ready to become sandboxes. Refilled behind the foreground, a few at a time. A
 * container leaves by being claimed or dropped and never comes back.
 */

import { LRUCache } from "lru-cache";
import type { NodeLoad, PoolTarget } from "../../../shared/agent-api/routes.ts";
import { within } from "../../../shared/program/deadline.ts";
import type { Log } from "../../../shared/program/log.ts";
import { loop } from "../../../shared/program/loop.ts";
import { sameSize } from "../../containers/cgroup/limits.ts";
import type { Docker } from "../../containers/host-docker.ts";
import { type Flavour, flavourKey, type LiveContainer } from "../../containers/live-container.ts";
import { createLines } from "./lines.ts";
import { ENTRY_BYTES, planPool } from "./refill-plan.ts";
import { canBecome } from "./resize.ts";

const ROUND_MS = 1_000;
const BOOT_LIMIT_MS = 30_000;
const WARM_LIMIT_MS = 5_000;
/**
 * A refill begins after a quiet period, or under continuous load after the second time at the latest, which is that of a pool with
 * little missing: an empty one does not wait, because each start that finds nothing takes longer than a refill delays it.
 */
const QUIET_MS = 120;
const PATIENCE_MS = 1_500;
const POLL_MS = 40;
const MAX_RETRY_MS = 30_000;
/** Age at which a failure no longer counts. */
const FORGET_MS = 600_000;
/** Flavours whose entries were measured. */
const MOST_REMEMBERED = 1_000;
/** Memory of an entry outside its cgroup: the shim, and what the kernel keeps of its namespaces and mounts (`npm run bench`, density). */
const BESIDE_BYTES = 4 * 1024 * 1024;

export interface PoolDeps {
  readonly boot: (flavour: Flavour, signal: AbortSignal) => Promise<LiveContainer>;
  readonly docker: Docker;
  readonly dispose: (container: LiveContainer) => Promise<void>;
  readonly freeMemory: () => number;
  readonly reservedMemory: number;
  /** Bytes that all entries may take together. */
  readonly memoryBound: number;
  /** Starts for the pool at the same time. */
  readonly atOnce: number;
  /** Time of the last foreground start, unix milliseconds; Infinity while one is under way. */
  readonly lastForeground: () => number;
  readonly now: () => number;
  readonly log: Log;
}

export interface Pool {
  /**
   * Takes a frozen container, of the flavour's size if there is one, else of another size that can become the flavour's.
   * Synchronous, so that two callers never get the same one.
   */
  take(flavour: Flavour): LiveContainer | undefined;
  /** The next container that becomes ready, for a caller that waits in the queue of cold starts. */
  next(flavour: Flavour, signal: AbortSignal): Promise<LiveContainer>;
  setTargets(targets: readonly PoolTarget[]): void;
  /** Stops or begins again to start containers; those that are ready stay. */
  setFilling(filling: boolean): void;
  adopt(container: LiveContainer): void;
  /** Removes a ready container; has no effect on one that was claimed. */
  drop(containerId: string): Promise<void>;
  /** Call when a container has ended unexpectedly. True when it was in the pool. */
  lost(containerId: string): boolean;
  /** Containers that should run. */
  ids(): string[];
  containers(): readonly LiveContainer[];
  load(): NodeLoad["pools"];
  /** How many the orchestrator asks for, and bytes of memory: what entries take, and what they may take. */
  account(): PoolAccount;
  stop(): Promise<void>;
}

export interface PoolAccount {
  readonly asked: readonly { readonly buildId: string; readonly size: number }[];
  readonly usedBytes: number;
  readonly boundBytes: number;
}

interface Waiting {
  readonly flavour: Flavour;
  readonly call: (container: LiveContainer) => void;
}

export function createPool(deps: PoolDeps): Pool {
  const { boot, docker, dispose, freeMemory, reservedMemory, memoryBound, atOnce, lastForeground, now, log } = deps;
  const ready = new Map<string, LiveContainer[]>();
  const waiting = createLines<Waiting>();
  /** Flavours that could not be started, by key; the others are filled all the same. */
  const failing = new Map<string, { readonly count: number; readonly retryAt: number }>();
  /** Starts under way, by key. */
  const starting = new Map<string, number>();
  /** What the last entry of a flavour takes, by key: a frozen one does not change, and others of it take as much. */
  const bytes = new LRUCache<string, number>({ max: MOST_REMEMBERED });
  /** No targets: the orchestrator has not answered yet, and what an earlier agent process left stays. */
  const state = { targets: undefined as readonly PoolTarget[] | undefined, filling: true, full: false };

  const containers = () => [...ready.values()].flat();
  const kept = (): PoolTarget[] =>
    [...ready.values()].flatMap(([first, ...more]) =>
      first === undefined ? [] : [{ build: first.build, resources: first.resources, size: 1 + more.length }],
    );

  const measure = (container: LiveContainer) => {
    try {
      const { memory, shared } = container.cgroup.usage();
      bytes.set(flavourKey(container), memory + shared + BESIDE_BYTES);
    } catch {
      // It has just ended, which its claim finds out.
    }
  };

  const put = (container: LiveContainer) => {
    measure(container);
    const key = flavourKey(container);
    const first = waiting.take(key, ({ flavour }) => canBecome(container, flavour.resources));
    if (first === undefined) ready.set(key, [...(ready.get(key) ?? []), container]);
    else first.call(container);
  };

  const take = (key: string, entry?: LiveContainer): LiveContainer | undefined => {
    const entries = ready.get(key) ?? [];
    const [container] = entries.splice(entry === undefined ? 0 : entries.indexOf(entry), 1);
    if (entries.length === 0) ready.delete(key);
    return container;
  };

  const takeFor = (flavour: Flavour): LiveContainer | undefined => {
    const key = flavourKey(flavour);
    const entries = ready.get(key) ?? [];
    const entry =
      entries.find(({ resources }) => sameSize(resources, flavour.resources)) ??
      entries.find((one) => canBecome(one, flavour.resources));
    return entry === undefined ? undefined : take(key, entry);
  };

  const remove = (containerId: string): LiveContainer | undefined => {
    for (const [key, entries] of ready) {
      const container = entries.find(({ id }) => id === containerId);
      if (container === undefined) continue;
      return take(key, container);
    }
    return undefined;
  };

  const quiet = async (filled: number, signal: AbortSignal) => {
    const begun = now();
    while (now() - lastForeground() < QUIET_MS && now() - begun < PATIENCE_MS * filled && !signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  };

  const fill = async (flavour: Flavour, signal: AbortSignal) => {
    const container = await within(BOOT_LIMIT_MS, (limit) => boot(flavour, AbortSignal.any([signal, limit])));
    try {
      await within(WARM_LIMIT_MS, (limit) =>
        docker.envd.warm(
          { address: container.slot.address, controlToken: container.controlToken },
          AbortSignal.any([signal, limit]),
        ),
      );
      await container.cgroup.freeze();
    } catch (error) {
      await dispose(container);
      throw error;
    }
    put(container);
  };

  const tryFill = async (flavour: Flavour, signal: AbortSignal) => {
    const key = flavourKey(flavour);
    starting.set(key, (starting.get(key) ?? 0) + 1);
    try {
      await fill(flavour, signal);
      failing.delete(key);
    } catch (error) {
      // A missing image stays missing for a while, so the pauses between attempts grow.
      const count = failing.get(key)?.count ?? 0;
      failing.set(key, { count: count + 1, retryAt: now() + Math.min(MAX_RETRY_MS, ROUND_MS * 2 ** count) });
      if (!signal.aborted)
        log.warn({ err: error, buildId: flavour.build.buildId }, "could not start a container for the pool");
    } finally {
      const left = (starting.get(key) ?? 1) - 1;
      if (left === 0) starting.delete(key);
      else starting.set(key, left);
    }
  };

  const resting = (): ReadonlySet<string> => {
    for (const [key, { retryAt }] of failing) if (now() - retryAt > FORGET_MS) failing.delete(key);
    return new Set([...failing].filter(([, { retryAt }]) => now() < retryAt).map(([key]) => key));
  };

  const next = async () => {
    const { directory } = await docker.runtime();
    const counts = new Map([...ready].map(([key, entries]) => [key, entries.length]));
    return planPool({
      targets: state.targets ?? kept(),
      filling: state.filling,
      runtime: directory,
      ready: counts,
      starting,
      bytes,
      resting: resting(),
      reservedMemory,
      memoryBound,
      freeMemory: freeMemory(),
    });
  };

  const round = async (signal: AbortSignal) => {
    const underWay = new Set<Promise<void>>();
    try {
      while (!signal.aborted) {
        const step = await next();
        state.full = step.full;
        for (const [key, count] of step.drop) {
          for (let dropped = 0; dropped < count; dropped++) {
            const container = take(key);
            if (container !== undefined) await dispose(container);
          }
        }
        if (step.boot === undefined) {
          if (underWay.size === 0) return;
          await Promise.race(underWay);
          continue;
        }
        await quiet(step.filled, signal);
        if (signal.aborted) return;
        const work: Promise<void> = tryFill(step.boot, signal).finally(() => underWay.delete(work));
        underWay.add(work);
        if (underWay.size >= atOnce) await Promise.race(underWay);
      }
    } finally {
      await Promise.all(underWay);
    }
  };

  const refill = loop({ name: "pool", everyMs: ROUND_MS, log }, round);

  return {
    take(flavour) {
      const container = takeFor(flavour);
      refill.wake();
      return container;
    },
    next(flavour, signal) {
      const key = flavourKey(flavour);
      return new Promise((resolve, reject) => {
        const leave = () => {
          waiting.leave(key, one);
          reject(signal.reason as Error);
        };
        const call = (container: LiveContainer) => {
          signal.removeEventListener("abort", leave);
          resolve(container);
        };
        const one: Waiting = { flavour, call };
        if (signal.aborted) return leave();
        signal.addEventListener("abort", leave, { once: true });
        waiting.join(key, one);
      });
    },
    setTargets(targets) {
      state.targets = targets;
      refill.wake();
    },
    setFilling(filling) {
      state.filling = filling;
      if (filling) refill.wake();
    },
    adopt: put,
    async drop(containerId) {
      const container = remove(containerId);
      if (container !== undefined) await dispose(container);
    },
    lost(containerId) {
      const container = remove(containerId);
      if (container === undefined) return false;
      void dispose(container);
      refill.wake();
      return true;
    },
    ids: () => containers().map(({ id }) => id),
    containers,
    load() {
      return (state.targets ?? []).map(({ build: { buildId }, size }) => {
        const count = containers().filter((entry) => entry.build.buildId === buildId).length;
        return { buildId, wanted: state.full ? Math.min(size, count) : size, ready: count };
      });
    },
    account: () => ({
      asked: (state.targets ?? []).map(({ build, size }) => ({ buildId: build.buildId, size })),
      usedBytes: [...ready].reduce((sum, [key, { length }]) => sum + length * (bytes.get(key) ?? ENTRY_BYTES), 0),
      boundBytes: memoryBound,
    }),
    stop: () => refill.stop(),
  };
}
