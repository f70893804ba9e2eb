/** The common part of a pause and a checkpoint: the memory of a frozen sandbox, durable on the disk. */

import type { TakenSnapshot } from "../../../shared/agent-api/routes.ts";
import { defined } from "../../../shared/defined.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Teardown } from "../../../shared/program/teardown.ts";
import { noTiming, type Timing } from "../../../shared/program/tracing/timing.ts";
import { ENVD_VERSION } from "../../../shared/version.ts";
import type { Docker } from "../../containers/host-docker.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import type { Origins } from "../../host/origins.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import type { Snapshot, SnapshotDisk, StoredSizes } from "../../store/snapshots.ts";
import { clearLinks } from "../store/clear-links.ts";
import { noSpace } from "../store/files.ts";
import { type Inside, MANIFEST_FORMAT, type Manifest, type StoredFile } from "../store/manifest.ts";
import type { Memory } from "./host-memory.ts";
import { letFilesChange } from "./shared-files.ts";
import { nameSockets } from "./socket-names.ts";

export interface SnapshotRequest {
  readonly snapshotId: string;
  readonly memory: boolean;
  /** false: it need not outlive a crash of the host. Default: true. */
  readonly durable?: boolean | undefined;
  /** Of a pause; false: the container is dropped, and every resume comes from the disk. Default: true. */
  readonly frozen?: boolean | undefined;
  /** Copies that start from it at once. Default: 1, where it lives for one call. */
  readonly copies?: number | undefined;
  /** What its parts take. */
  readonly timing?: Timing | undefined;
}

export interface CheckpointMemoryDeps {
  readonly docker: Docker;
  readonly memory: Memory;
  readonly origins: () => Omit<Origins, "envd">;
  /** Bytes of a sandbox's writable layer, as last measured. */
  readonly diskBytes: (executionId: string) => number;
  readonly now: () => number;
  readonly log: Log;
}

interface MemoryRequest extends SnapshotRequest {
  readonly kind: Snapshot["kind"];
  readonly image: string | undefined;
}

/** Further work while memory is written, and after that before it is durable. */
interface Steps {
  readonly meanwhile?: () => Promise<void>;
  readonly afterwards?: () => Promise<void>;
}

/** The container is frozen and stays so unless a step thaws it. `teardown` gets the undo steps. */
export async function checkpointMemory(
  sandbox: Sandbox,
  request: MemoryRequest,
  { teardown, deps, steps = {} }: { teardown: Teardown; deps: CheckpointMemoryDeps; steps?: Steps },
): Promise<StoredSizes> {
  const { memory } = deps;
  const { timing = noTiming } = request;
  try {
    const draft = await memory.files.draft(request.snapshotId, request.durable ?? true);
    teardown.add("files", () => draft.discard());
    if (request.memory)
      teardown.add("names of open files", () =>
        clearLinks(sandbox.container, request.snapshotId, { ...memory, log: deps.log }),
      );
    const dumped = request.memory ? dump(sandbox, draft, { deps, timing }) : Promise.resolve();
    // Waits for the end of both before it undoes either.
    const outcomes = await Promise.allSettled([dumped, steps.meanwhile?.()]);
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    await steps.afterwards?.();
    const changing = () => changeImages(sandbox, draft, deps);
    const inside = request.memory ? await timing.measure("images", changing) : undefined;
    const finishing = () => draft.finish((files) => describe(sandbox, request, { files, inside, deps }));
    const { memoryBytes, diskBytes, createdAt } = await timing.measure("finish", finishing);
    return { memoryBytes, diskBytes, takenAt: createdAt };
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw (
      noSpace(error) ??
      new AppError("snapshot_failed", "the snapshot could not be written; the sandbox goes on running", {
        cause: error,
      })
    );
  }
}

/** Makes the images of a dump into those that are restored. Resolves to what its connections inside had under way. */
async function changeImages(
  { container }: Sandbox,
  draft: { readonly images: string; readonly work: string },
  { docker, memory }: CheckpointMemoryDeps,
) {
  await letFilesChange(draft.images, await docker.annotations.volumePaths(container.id));
  await nameSockets(draft);
  await memory.criu.wipeOnRestore(draft.images);
  return memory.connections.closeInImages(draft.images, container.slot);
}

async function dump(
  { container, sandboxId }: Sandbox,
  draft: { readonly images: string; readonly work: string },
  { deps, timing }: { readonly deps: CheckpointMemoryDeps; readonly timing: Timing },
): Promise<void> {
  const { memory, log } = deps;
  const { criu, connections, watchedPaths } = memory;
  // Without the paths CRIU refuses a sandbox that watches files, and says so.
  const noted = () =>
    watchedPaths
      .note(container, draft.work)
      .catch((error: unknown) =>
        log.warn({ err: error, sandboxId }, "could not find the paths of watched files and sockets"),
      );
  await timing.measure("paths", noted);
  try {
    await timing.measure("dump", () => criu.dump(container.id, draft));
  } catch (error) {
    await connections
      .mend(container.slot)
      .catch((cause: unknown) =>
        log.warn({ err: cause, sandboxId }, "could not check the network after a failed dump"),
      );
    throw error;
  }
}

function describe(
  sandbox: Sandbox,
  request: MemoryRequest,
  { files, inside, deps }: { files: readonly StoredFile[]; inside: Inside | undefined; deps: CheckpointMemoryDeps },
): Manifest {
  const { container, executionId, sandboxId } = sandbox;
  return {
    format: MANIFEST_FORMAT,
    snapshotId: request.snapshotId,
    sandboxId,
    executionId,
    kind: request.kind,
    memory: request.memory,
    containerId: container.id,
    ...defined({ image: request.image }),
    build: container.build,
    resources: container.resources,
    runtime: container.runtime,
    controlToken: container.controlToken,
    origins: { ...deps.origins(), envd: ENVD_VERSION },
    ...defined({ inside }),
    memoryBytes: files.reduce((sum, { size }) => sum + size, 0),
    diskBytes: deps.diskBytes(executionId),
    createdAt: deps.now(),
    files: [...files],
  };
}

export function diskOf(container: LiveContainer): SnapshotDisk {
  const { id, controlToken, build, resources, runtime, upperDirectory, createdAt } = container;
  return { containerId: id, controlToken, build, resources, runtime, upperDirectory, createdAt };
}

export function toTakenSnapshot(
  snapshot: Pick<Snapshot, "id" | "executionId" | "sandboxId" | "image" | "memory" | keyof StoredSizes>,
): TakenSnapshot {
  const { id, executionId, sandboxId, image, memory, memoryBytes, diskBytes, takenAt } = snapshot;
  const common = { executionId, sandboxId, snapshotId: id, memory, memoryBytes, diskBytes, takenAt };
  return image === undefined ? common : { ...common, image };
}
