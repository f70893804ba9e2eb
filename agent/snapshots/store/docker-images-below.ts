/**
 * Names the images below the disks of paused sandboxes. A template that is built again or deleted leaves its image without a
 * name, and Docker deletes such an image (`docker system prune`) once it has deleted the stopped container of the sandbox.
 */

import type { Log } from "../../../shared/program/log.ts";
import type { Containers } from "../../containers/containers.ts";
import type { SnapshotStore } from "../../store/snapshots.ts";

export interface ImagesBelowDeps {
  readonly containers: Pick<Containers, "keepImageBelow" | "snapshotImages">;
  readonly store: Pick<SnapshotStore, "all">;
  readonly log: Log;
}

/** Name of a checkpoint's image, and of the image below the disk of a pause. */
export function snapshotImage(snapshotId: string): string {
  return `svc/snapshot:${snapshotId}`;
}

/** Never rejects: the next round tries again. */
export async function nameImageBelow(
  { snapshotId, containerId }: { readonly snapshotId: string; readonly containerId: string },
  { containers, log }: Pick<ImagesBelowDeps, "containers" | "log">,
): Promise<void> {
  try {
    await containers.keepImageBelow(containerId, snapshotImage(snapshotId));
  } catch (error) {
    // Docker does not describe a container whose disk is not mounted, or which it has lost.
    log.debug({ err: error, snapshotId, containerId }, "could not name the image below the disk of a paused sandbox");
  }
}

/** Names those of pauses that have no name yet: of an earlier version, or because the agent was killed. */
export async function nameImagesBelow(deps: ImagesBelowDeps): Promise<void> {
  const named = new Set((await deps.containers.snapshotImages()).map(({ snapshotId }) => snapshotId));
  const paused = deps.store.all().filter(({ kind, state }) => kind === "pause" && state === "stored");
  for (const { id, disk } of paused)
    if (!named.has(id)) await nameImageBelow({ snapshotId: id, containerId: disk.containerId }, deps);
}
