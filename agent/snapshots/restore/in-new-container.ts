/**
 * Makes a container for a paused sandbox whose own was removed from Docker. Its disk image and its memory are outside of
 * Docker, and the new container gets them. Cut at any line, the row names the container that has the disk or will get it, and
 * the one that had it; the next resume makes another container, and the sweep removes the unfinished one.
 */

import { randomUUID } from "node:crypto";
import { AppError } from "../../../shared/http/errors.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Docker } from "../../containers/host-docker.ts";
import type { Network } from "../../network/host-network.ts";
import { isOwnLayer } from "../../sandbox-disks/layer.ts";
import type { Snapshot, SnapshotDisk } from "../../store/snapshots.ts";
import type { Stores } from "../../store/stores.ts";

export interface InNewContainerDeps {
  readonly docker: Docker;
  readonly network: Network;
  readonly stores: Stores;
  readonly log: Log;
}

/** Resolves to the snapshot with its new container. @throws {AppError} disk_lost, no_compatible_node */
export async function inNewContainer(snapshot: Snapshot, deps: InNewContainerDeps): Promise<Snapshot> {
  const { docker, network, stores, log } = deps;
  const { containers } = docker;
  const { id, sandboxId, disk } = snapshot;
  const from = [disk.containerId, disk.takenFrom].find((one) => one !== undefined && containers.hasOwnDisk(one));
  if (from === undefined) throw withoutDisk(disk);
  // The memory image has files of its version of envd mapped, and its envd has the container's token.
  const runtime = await docker.runtime(disk.runtime);
  const containerId = await containers.create({
    name: `svc-${sandboxId}-${randomUUID().slice(0, 8)}`,
    build: disk.build,
    resources: disk.resources,
    command: runtime.command,
    env: [`SVC_ENVD_CONTROL=${disk.controlToken}`],
    runtimeDirectory: runtime.directory,
    resolver: network.plan.gateway,
    takeOver: {
      from,
      own: (successor) =>
        stores.snapshots.moveDisk(id, { containerId: successor, takenFrom: from, upperDirectory: undefined }),
    },
  });
  const upperDirectory = (await containers.inspect(containerId))?.upperDirectory;
  stores.snapshots.moveDisk(id, { containerId, takenFrom: undefined, upperDirectory });
  log.warn(
    { sandboxId, snapshotId: id, containerId, lost: from },
    "Docker has lost the container of a paused sandbox: a new one has its disk",
  );
  await containers
    .rename(containerId, `svc-${sandboxId}`)
    .catch((error: unknown) => log.debug({ err: error, containerId }, "could not rename a container"));
  return stores.snapshots.get(id) ?? snapshot;
}

/** A disk in Docker's own layer is gone with its container. One in a file of its own may come back with its file system. */
function withoutDisk({ containerId, takenFrom, upperDirectory }: SnapshotDisk): AppError {
  const container = containerId.slice(0, 12);
  const wasOwn = takenFrom !== undefined || (upperDirectory !== undefined && isOwnLayer(upperDirectory, containerId));
  return wasOwn
    ? new AppError(
        "no_compatible_node",
        `the disk image of container ${container} is not in the directory of the sandboxes' disks (SVC_DISKS_DIR): the operator ` +
          "mounts its file system again, or kills the sandbox",
      )
    : new AppError("disk_lost", `container ${container} was removed from Docker, and the sandbox's disk with it`);
}
