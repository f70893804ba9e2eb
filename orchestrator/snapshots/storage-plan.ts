/** Sorts what projects store into what expires soon and what is largest. Pure. */

import type { StoredItem } from "../store/storage/storage.ts";
import { totalBytes } from "../store/storage/stored-bytes.ts";

/** 0: without end. */
export interface Lifetimes {
  /** From the pause. */
  readonly pausedMs: number;
  /** From the last use. */
  readonly snapshotMs: number;
}

export interface StoredByProject {
  readonly projectId: string;
  readonly pausedCount: number;
  readonly snapshotCount: number;
  /** The first to expire within a day, with those that are overdue. */
  readonly expiringSoon: readonly StoredItem[];
  readonly largest: readonly StoredItem[];
}

/** Entries of each list of a project. */
const SHOWN = 10;
const SOON_MS = 86_400_000;

/** Undefined: it never expires, or not before its use ends. */
export function expiresAt(
  { kind, inUse, unusedSince }: Pick<StoredItem, "kind" | "inUse" | "unusedSince">,
  { pausedMs, snapshotMs }: Lifetimes,
): number | undefined {
  const keepMs = kind === "paused" ? pausedMs : snapshotMs;
  return keepMs === 0 || inUse ? undefined : unusedSince + keepMs;
}

/** Projects that store something, in the order of their ids. */
export function storedByProject(
  items: readonly StoredItem[],
  { lifetimes, now }: { readonly lifetimes: Lifetimes; readonly now: number },
): StoredByProject[] {
  const byProject = new Map<string, StoredItem[]>();
  for (const item of items) {
    const own = byProject.get(item.projectId);
    if (own === undefined) byProject.set(item.projectId, [item]);
    else own.push(item);
  }
  return [...byProject.keys()].sort().map((projectId) => {
    const own = byProject.get(projectId) ?? [];
    const pausedCount = own.filter(({ kind }) => kind === "paused").length;
    const ends = own.flatMap((item) => {
      const at = expiresAt(item, lifetimes);
      return at === undefined || at > now + SOON_MS ? [] : [{ item, at }];
    });
    return {
      projectId,
      pausedCount,
      snapshotCount: own.length - pausedCount,
      expiringSoon: ends
        .sort((a, b) => a.at - b.at)
        .slice(0, SHOWN)
        .map(({ item }) => item),
      largest: own
        .filter(({ size }) => size !== undefined)
        .sort((a, b) => bytesOf(b) - bytesOf(a))
        .slice(0, SHOWN),
    };
  });
}

function bytesOf({ size }: StoredItem): number {
  return size === undefined ? 0 : totalBytes(size);
}
