/** Selects stored files and images that no record references. Pure. */

import type { SnapshotImage } from "../../containers/containers.ts";
import type { Snapshot } from "../../store/snapshots.ts";

export interface StoredView {
  /** Ids of every snapshot, in any state. */
  readonly rows: readonly Pick<Snapshot, "id" | "kind" | "state" | "disk">[];
  /** Ids of snapshots that a lost database named. */
  readonly held: ReadonlySet<string>;
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

export function planGarbage({ rows, held, containers, directories, images, now, graceMs }: StoredView): Garbage {
  const known = new Set([...rows.map(({ id }) => id), ...held]);
  const old = (at: number) => now - at >= graceMs;
  const left = rows.filter(({ state, disk }) => state === "spent" && !containers.has(disk.containerId));
  // Docker keeps an image for a container, but may have lost the container of a paused sandbox.
  const below = new Set(rows.filter(({ kind }) => kind === "pause").map(({ disk }) => disk.build.image));
  return {
    spent: left.map(({ id }) => id),
    directories: directories.filter(({ id, changedAt }) => !known.has(id) && old(changedAt)).map(({ id }) => id),
    images: images.filter(
      ({ id, snapshotId, createdAt }) => !known.has(snapshotId) && !below.has(id) && old(createdAt),
    ),
  };
}
