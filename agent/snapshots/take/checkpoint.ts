/** Takes a copy of a running sandbox: memory and disk of one instant. The sandbox is frozen during the dump only. */

import type { TakenSnapshot } from "../../../shared/agent-api/routes.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import { noTiming } from "../../../shared/program/tracing/timing.ts";
import { flattenWhenDeep } from "../../node-disk/flatten.ts";
import { refuseHoles } from "../../node-disk/holes.ts";
import type { NodeDisks } from "../../node-disk/host-disks.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import type { Stores } from "../../store/stores.ts";
import { clearLinks } from "../store/clear-links.ts";
import { snapshotImage } from "../store/docker-images-below.ts";
import type { CopiesAhead } from "./copies-ahead.ts";
import { freezeForSnapshot } from "./freeze.ts";
import {
  type CheckpointMemoryDeps,
  checkpointMemory,
  diskOf,
  type SnapshotRequest,
  toTakenSnapshot,
} from "./memory-to-disk.ts";
import { refuseTraced } from "./traced.ts";

export interface CheckpointDeps extends CheckpointMemoryDeps {
  readonly disks: NodeDisks;
  readonly stores: Stores;
  /** Absent: no copy starts from it at once. */
  readonly copies?: Pick<CopiesAhead, "begin" | "stored" | "runs" | "drop">;
}

export async function checkpoint(
  sandbox: Sandbox,
  request: SnapshotRequest,
  deps: CheckpointDeps,
): Promise<TakenSnapshot> {
  const { stores, now, log } = deps;
  const { containers, annotations, envd } = deps.docker;
  const { findHole } = deps.disks;
  const { executionId, sandboxId, projectId, container } = sandbox;
  const { snapshotId, memory, durable = true, copies = 1, timing = noTiming } = request;
  const at = { address: container.slot.address, controlToken: container.controlToken };
  const image = snapshotImage(snapshotId);
  const ownDisk = containers.hasOwnDisk(container.id);
  const teardown = new Teardown(log);
  const goOn = once(async () => {
    container.cgroup.thaw();
    if (memory)
      await envd
        .resumeWatches(at)
        .catch((error: unknown) => log.warn({ err: error, sandboxId }, "could not resume the watches of a sandbox"));
  });
  try {
    if (memory) refuseTraced(container.cgroup.processes());
    stores.snapshots.intend({
      id: snapshotId,
      kind: "checkpoint",
      state: "taking",
      sandboxId,
      executionId,
      projectId,
      disk: diskOf(container),
      image,
      memory,
      memoryBytes: 0,
      diskBytes: 0,
      takenAt: now(),
    });
    teardown.add("row", () => stores.snapshots.remove(snapshotId));
    teardown.add("image", () => containers.removeImage(image));
    await timing.measure("ahead", () => containers.copyAhead(container.id, image));
    if (!durable && ownDisk) {
      const { build, resources, runtime } = container;
      const startable = memory && (await annotations.volumePaths(container.id)).length === 0;
      deps.copies?.begin(snapshotId, { build, resources, runtime, startable }, copies);
      teardown.add("containers of copies", () => deps.copies?.drop(snapshotId));
    }
    teardown.add("freeze", goOn);
    const suspended = () =>
      envd
        .suspendWatches(at)
        .catch((error: unknown) =>
          log.warn(
            { err: error, sandboxId },
            "could not suspend the watches of a sandbox, taking the checkpoint anyway",
          ),
        );
    if (memory) await timing.measure("envd", suspended);
    await timing.measure("freeze", () => freezeForSnapshot(container.cgroup));
    const frozenAt = performance.now();
    const steps = {
      meanwhile: async () => {
        if (!ownDisk) await refuseHoles(container.upperDirectory, findHole);
        await timing.measure("disk", () => containers.commit(container.id, image, snapshotId));
        deps.copies?.stored(snapshotId);
      },
      afterwards: async () => {
        if ((await deps.memory.files.links(snapshotId)) !== undefined) {
          // The disk was copied during the dump, which gives names to open files: the copy needs these names.
          deps.copies?.drop(snapshotId);
          if (!ownDisk) await containers.removeImage(image);
          await containers.commit(container.id, image, snapshotId);
          await clearLinks(container, snapshotId, { ...deps.memory, log });
        }
        timing.add("frozen", performance.now() - frozenAt);
        await goOn();
        deps.copies?.runs(snapshotId);
        await containers.keep(container.id, image, durable);
        // Each checkpoint of a fork of a checkpoint adds a layer.
        await flattenWhenDeep(image, { containers, findHole });
      },
    };
    const stored = await checkpointMemory(
      sandbox,
      { ...request, kind: "checkpoint", image },
      { teardown, deps, steps },
    );
    stores.snapshots.keep(snapshotId, stored, () => undefined, durable);
    teardown.release();
    return toTakenSnapshot({ executionId, sandboxId, id: snapshotId, image, memory, ...stored });
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => (done ??= work());
}
