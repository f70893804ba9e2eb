/**
 * Frozen containers of paused sandboxes: a resume thaws its container. They are kept for a while, and dropped oldest
 * first when memory is short, because their memory is on the disk already.
 */

import type { Log } from "../../../shared/program/log.ts";
import { loop } from "../../../shared/program/loop.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import type { Evict } from "./evict.ts";
import { planEviction } from "./frozen-plan.ts";

const ROUND_MS = 1_000;

export interface FrozenContainersDeps {
  readonly evict: Evict;
  readonly keepMs: number;
  readonly freeMemory: () => number;
  /** Bytes that must stay free. */
  readonly reservedMemory: number;
  readonly now: () => number;
  readonly log: Log;
}

export interface FrozenContainers {
  /** @param ran its processes have run since their memory was stored: it is kept until it is resumed or deleted */
  add(snapshotId: string, container: LiveContainer, ran?: boolean): void;
  /** Takes a frozen container. Synchronous, so that two callers never get the same one. */
  take(snapshotId: string): LiveContainer | undefined;
  /** Resolves when its processes are dead and its address is free; may be called for any container. */
  drop(container: LiveContainer): Promise<void>;
  /** Drops the container of a snapshot that is not to be kept frozen: at once, or where it is held, after that. Never throws. */
  discard(snapshotId: string, container: LiveContainer): void;
  /** Oldest first. `ran`: as given to `add`. */
  kept(): readonly { readonly id: string; readonly ran: boolean }[];
  /** Drops a container whose memory is stored; has no effect on one that was taken, is held, or whose processes have run. */
  dropStored(snapshotId: string): Promise<void>;
  /** Waits for the drop under way. */
  dropped(containerId: string): Promise<void>;
  /**
   * Resolves once nothing writes to the snapshot's disk; until its result is called, no container of it is dropped, because processes
   * that end change the disk. Whoever takes or deletes the snapshot does not wait for it.
   */
  hold(snapshotId: string, containerId: string): Promise<() => void>;
  /** Call when a container has ended unexpectedly. True when it was one of these. */
  lost(containerId: string): boolean;
  /** Containers that should run. */
  ids(): string[];
  stop(): Promise<void>;
}

/** The frozen container of a paused sandbox, as an earlier agent process left it. */
export interface FoundFrozen {
  readonly container: LiveContainer;
  readonly snapshotId: string;
  /** Its processes may have run since their memory was stored. */
  readonly ran: boolean;
}

interface Hold {
  readonly snapshotId: string;
  readonly containerId: string;
}

interface Entry {
  readonly container: LiveContainer;
  readonly since: number;
  readonly ran: boolean;
}

export function createFrozenContainers({
  evict,
  keepMs,
  freeMemory,
  reservedMemory,
  now,
  log,
}: FrozenContainersDeps): FrozenContainers {
  const entries = new Map<string, Entry>();
  const dropping = new Map<string, Promise<void>>();
  const failed = new Map<string, LiveContainer>();
  const holds = new Set<Hold>();
  const isHeld = (id: string) => [...holds].some(({ snapshotId }) => snapshotId === id);

  const drop = (container: LiveContainer): Promise<void> => {
    const under = dropping.get(container.id);
    if (under !== undefined) return under;
    failed.delete(container.id);
    const done = evict(container)
      .catch((error: unknown) => {
        log.warn({ err: error, containerId: container.id }, "could not drop a frozen container yet");
        failed.set(container.id, container);
        throw error;
      })
      .finally(() => dropping.delete(container.id));
    dropping.set(container.id, done);
    return done;
  };

  const rounds = loop({ name: "frozen", everyMs: ROUND_MS, log }, async () => {
    // Processes that the first try has killed may still be ending, but this one would unmount the disk.
    const held = new Set([...holds].map(({ containerId }) => containerId));
    const again = [...failed.values()].filter(({ id }) => !held.has(id));
    // A failure is logged, and keeps no other container from being dropped.
    for (const container of again) await drop(container).catch(() => undefined);
    const kept = [...entries].filter(([id]) => !isHeld(id)).map(([id, { since, ran }]) => ({ id, since, ran }));
    const free = freeMemory();
    for (const id of planEviction({ kept, now: now(), keepMs, freeMemory: free, reservedMemory })) {
      const container = entries.get(id)?.container;
      entries.delete(id);
      if (container === undefined) continue;
      log.debug({ snapshotId: id, free }, "dropped a frozen container");
      await drop(container);
    }
  });

  return {
    add: (snapshotId, container, ran = false) => void entries.set(snapshotId, { container, since: now(), ran }),
    take(snapshotId) {
      const container = entries.get(snapshotId)?.container;
      entries.delete(snapshotId);
      return container;
    },
    drop,
    discard(snapshotId, container) {
      // As one that has been kept for long enough: the next round after the hold drops it.
      if (isHeld(snapshotId)) entries.set(snapshotId, { container, since: Number.NEGATIVE_INFINITY, ran: false });
      else drop(container).catch(() => undefined);
    },
    kept: () => [...entries].sort(([, a], [, b]) => a.since - b.since).map(([id, { ran }]) => ({ id, ran })),
    async dropStored(snapshotId) {
      const entry = entries.get(snapshotId);
      if (entry === undefined || entry.ran || isHeld(snapshotId)) return;
      entries.delete(snapshotId);
      await drop(entry.container);
    },
    dropped: async (containerId) => dropping.get(containerId)?.catch(() => undefined),
    async hold(snapshotId, containerId) {
      const own: Hold = { snapshotId, containerId };
      holds.add(own);
      await dropping.get(containerId)?.catch(() => undefined);
      return () => void holds.delete(own);
    },
    lost(containerId) {
      for (const [id, { container }] of entries) {
        if (container.id !== containerId) continue;
        entries.delete(id);
        drop(container).catch(() => undefined);
        return true;
      }
      return false;
    },
    ids: () => [...entries.values()].map(({ container }) => container.id),
    async stop() {
      await rounds.stop();
      await Promise.allSettled(dropping.values());
    },
  };
}
