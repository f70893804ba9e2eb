/** Selects stored files and images that no record references. Pure. */

import type { SnapshotImage } from "../../containers/containers.ts";
import type { Snapshot } from "../../store/snapshots.ts";

export interface StoredView {
  /** Ids of every snapshot, in any state. */
  readonly rows: readonly Pick<Snapshot, "id" | "state" | "disk">[];
  /** Containers with an owner. */
  readonly containers: ReadonlySet<string>;
  readonly directories: readonly { readonly id: string; readonly changedAt: number }[];
  readonly images: readonly SnapshotImage[];
  readonly now: number;
  /** Age that files and images must have to be deleted: younger ones may get their row at any moment. */
  readonly graceMs: number;
}

export interface Garbage {
  /** Rows of memory images whose sandbox continued and has ended since. */
  readonly spent: readonly string[];
  readonly directories: readonly string[];
  readonly images: readonly SnapshotImage[];
}

export function planGarbage({ rows, containers, directories, images, now, graceMs }: StoredView): Garbage {
  const known = new Set(rows.map(({ id }) => id));
  const old = (at: number) => now - at >= graceMs;
  const left = rows.filter(({ state, disk }) => state === "spent" && !containers.has(disk.containerId));
  return {
    spent: left.map(({ id }) => id),
    directories: directories.filter(({ id, changedAt }) => !known.has(id) && old(changedAt)).map(({ id }) => id),
    images: images.filter(({ snapshotId, createdAt }) => !known.has(snapshotId) && old(createdAt)),
  };
}
