/** Lists, replaces and deletes the snapshots stored on this node. */

import type { StoredSnapshot } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { KeyedMutex } from "../../../shared/program/keyed-mutex.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Containers } from "../../containers/containers.ts";
import type { Disposal } from "../../sandboxes/disposal.ts";
import type { Snapshot, SnapshotStore } from "../../store/snapshots.ts";
import type { FrozenContainers } from "../frozen/frozen.ts";
import { snapshotImage } from "./docker-images-below.ts";
import type { SnapshotFiles } from "./files.ts";

export interface SnapshotsDeps {
  readonly store: SnapshotStore;
  readonly files: SnapshotFiles;
  readonly frozen: Pick<FrozenContainers, "take" | "dropped">;
  readonly containers: Pick<Containers, "remove" | "removeImage">;
  /** Removes containers that were made ahead for copies of a snapshot. */
  readonly dropCopies: (id: string) => void;
  readonly disposal: Pick<Disposal, "kill" | "remove">;
  /** One operation at a time per snapshot. */
  readonly mutex: KeyedMutex;
  readonly log: Log;
}

export interface Snapshots {
  list(): StoredSnapshot[];
  /**
   * Deletes memory, container and address of a paused sandbox; of a sandbox that runs again, only the memory.
   * An unknown id counts as success.
   */
  delete(id: string): Promise<void>;
  /** Called when a container has a newer snapshot: deletes the memory images of older ones, which have no use any more. */
  replaced(by: { readonly id: string; readonly containerId: string }): void;
  settled(): Promise<void>;
}

export function createSnapshots(deps: SnapshotsDeps): Snapshots {
  const { store, files, frozen, containers, dropCopies, disposal, mutex, log } = deps;
  const background = new Set<Promise<void>>();

  const removeDisk = async ({ id, disk }: Snapshot) => {
    const container = frozen.take(id);
    if (container === undefined) {
      await frozen.dropped(disk.containerId);
      await containers.remove(disk.containerId);
      if (disk.takenFrom !== undefined) await containers.remove(disk.takenFrom);
      return;
    }
    await disposal.kill(container);
    disposal.remove(container);
  };

  const remove = (id: string): Promise<void> =>
    mutex(id, async () => {
      const snapshot = store.get(id);
      if (snapshot?.state === "taking") throw new AppError("conflict", "the snapshot is being taken");
      if (snapshot?.kind === "pause" && snapshot.state === "stored") await removeDisk(snapshot);
      dropCopies(id);
      await files.remove(id);
      // Docker keeps an image that a container needs; garbage.ts removes it later.
      if (snapshot !== undefined) await containers.removeImage(snapshot.image ?? snapshotImage(id));
      store.remove(id);
    });

  return {
    list: () =>
      store
        .all()
        .filter(({ state, held }) => state !== "taking" && held === undefined)
        .map(toStored),
    delete: remove,
    replaced({ id: newest, containerId }) {
      for (const { id, state, disk } of store.all()) {
        if (state !== "spent" || disk.containerId !== containerId || id === newest) continue;
        const done = remove(id)
          .catch((error: unknown) => log.warn({ err: error, snapshotId: id }, "could not remove an old memory image"))
          .finally(() => background.delete(done));
        background.add(done);
      }
    },
    async settled() {
      await Promise.all(background);
    },
  };
}

/** How many disks came from another node and have had no container on this one. */
export function fetchedDisks(snapshots: readonly Pick<Snapshot, "disk">[]): number {
  return snapshots.filter(({ disk }) => disk.takenFrom === disk.containerId).length;
}

/** A snapshot as the orchestrator gets it. */
export function toStored(snapshot: Snapshot): StoredSnapshot {
  const { id, kind, sandboxId, executionId, memory, memoryBytes, diskBytes, takenAt } = snapshot;
  return { snapshotId: id, kind, sandboxId, executionId, memory, memoryBytes, diskBytes, takenAt };
}
