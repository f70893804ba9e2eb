/** Finishes snapshots that an earlier agent process left unfinished: keeps durable ones and removes the others. */

import { bootId } from "../../../shared/machine-id.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Docker } from "../../containers/host-docker.ts";
import type { Stores } from "../../store/stores.ts";
import { clearLinks } from "../store/clear-links.ts";
import type { SnapshotFiles } from "../store/files.ts";
import type { Manifest } from "../store/manifest.ts";
import type { Memory } from "./host-memory.ts";

export interface InterruptedDeps {
  readonly docker: Docker;
  readonly memory: Memory;
  readonly stores: Stores;
  readonly now: () => number;
  readonly log: Log;
}

/** Runs before any other decision. Resolves to containers that may be frozen and must continue. */
export async function interruptedSnapshots({
  docker: { containers },
  memory: { files, criu },
  stores,
  now,
  log,
}: InterruptedDeps): Promise<string[]> {
  const goOn: string[] = [];
  const { stored, unfinished } = await files.list();
  for (const { id, kind, state, executionId, disk, image } of stores.snapshots.all()) {
    if (state !== "taking") continue;
    // A dump that gives a name to an open file waits for the disk.
    await containers.thawDisk(disk.containerId);
    // CRIU outlives the agent: thawed now, the sandbox would change while it is dumped.
    await criu.settled(files.draftDirectory(id));
    const manifest = stored.includes(id) ? await whole(files, id) : undefined;
    log.info({ snapshotId: id, kind, durable: manifest !== undefined }, "finishing an interrupted snapshot");
    const goesOn = manifest === undefined || kind === "checkpoint";
    if (goesOn) {
      const pid = (await containers.inspect(disk.containerId))?.pid ?? 0;
      await clearLinks({ id: disk.containerId, pid, upperDirectory: disk.upperDirectory }, id, { files, criu, log });
    }
    if (manifest === undefined) {
      await files.remove(id);
      // Garbage collection finds an image that Docker is still making.
      if (image !== undefined) await containers.removeImage(image);
      stores.snapshots.remove(id);
    } else {
      const { memoryBytes, diskBytes, createdAt } = manifest;
      stores.snapshots.keep(id, { memoryBytes, diskBytes, takenAt: createdAt }, () => {
        if (kind === "pause") stores.executions.stop(executionId, now());
      });
    }
    if (goesOn) goOn.push(disk.containerId);
  }
  for (const id of unfinished) await files.remove(id);
  return goOn;
}

async function whole(files: SnapshotFiles, id: string): Promise<Manifest | undefined> {
  try {
    const manifest = await files.manifest(id);
    // What was to live for one call was not flushed to the disk: after a restart of the machine it may be anything.
    return manifest.boot === undefined || manifest.boot === bootId() ? manifest : undefined;
  } catch {
    return undefined;
  }
}
