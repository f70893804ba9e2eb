/** Starts a new sandbox from a checkpoint: makes a new container from the image, with or without the memory. */

import { randomBytes } from "node:crypto";
import type { Origin } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import type { Containers } from "../../containers/containers.ts";
import type { EnvdRuntime } from "../../containers/envd-runtime.ts";
import { leastMemoryMb } from "../../containers/limits.ts";
import type { Launched, LaunchSpec } from "../../sandboxes/launch.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import { clearLinks } from "../clear-links.ts";
import { intend, type ReinitialiseDeps, reinitialise } from "./reinitialise.ts";
import { type RestoreContainerDeps, refuseMemory, restoreContainer } from "./restore.ts";

export interface StartCopyDeps extends RestoreContainerDeps, ReinitialiseDeps {
  readonly containers: Pick<Containers, "create" | "remove" | "start" | "inspect" | "kill" | "resize">;
  /** Without a directory: the current runtime. */
  readonly runtime: (directory?: string) => Promise<EnvdRuntime>;
  /** Address of the node's own resolver. */
  readonly resolver: string;
}

export async function startCopy(
  { executionId, body }: LaunchSpec,
  origin: Origin,
  deps: StartCopyDeps,
  signal: AbortSignal,
): Promise<Launched> {
  const snapshot = deps.stores.snapshots.get(origin.snapshotId);
  if (snapshot?.kind !== "checkpoint" || snapshot.state !== "stored" || snapshot.image === undefined)
    throw new AppError("snapshot_files_missing", `this node does not have snapshot ${origin.snapshotId}`);
  const memory = origin.memory && snapshot.memory;
  if (memory) refuseMemory("a start from stored memory", deps);
  if (memory) checkMemory(snapshot, body.resources.memoryMB);
  const teardown = new Teardown(deps.log);
  try {
    const disk = await create({ executionId, body }, { snapshot, image: snapshot.image, memory }, deps, teardown);
    signal.throwIfAborted();
    intend({ executionId, body }, disk.containerId, deps, teardown);
    const { projectId: owner, volumes = [] } = body;
    const from = { disk, memoryOf: memory ? snapshot : undefined, owner, volumes };
    const { container, verified } = await restoreContainer(from, deps, { teardown, signal });
    if (!memory) await clearLinks(container, snapshot.id, deps);
    // envd in the restored memory still has the original's token.
    const currentToken = memory ? snapshot.disk.controlToken : undefined;
    const copy = {
      executionId,
      body,
      container,
      watches: memory,
      ...(currentToken === undefined ? {} : { currentToken }),
    };
    const startedAt = await reinitialise(copy, deps, { teardown, signal });
    await verified;
    deps.stores.containers.started(container);
    deps.stores.executions.markRunning(executionId, startedAt);
    teardown.release();
    return { container, startedAt, warm: false, restored: memory ? "memory" : "disk" };
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

/** A copy of the source's own size fits, because its memory did. @throws {AppError} failed_precondition */
function checkMemory({ id, memoryBytes, disk }: Snapshot, memoryMB: number): void {
  const least = Math.min(leastMemoryMb(memoryBytes), disk.resources.memoryMB);
  if (memoryMB >= least) return;
  throw new AppError(
    "failed_precondition",
    `memory of ${memoryMB} MiB is too small for the stored memory of snapshot ${id}: ask for at least ${least} MiB ` +
      "(memoryMB), or start from its disk alone (memory: false)",
  );
}

interface From {
  readonly snapshot: Snapshot;
  readonly image: string;
  readonly memory: boolean;
}

async function create(
  { body }: LaunchSpec,
  { snapshot, image, memory }: From,
  deps: StartCopyDeps,
  teardown: Teardown,
) {
  // The memory image has files of its version of envd mapped.
  const runtime = await deps.runtime(memory ? snapshot.disk.runtime : undefined);
  const controlToken = randomBytes(24).toString("hex");
  const build = { ...body.build, image };
  const createdAt = deps.now();
  const containerId = await deps.containers.create({
    name: `svc-${body.sandboxId}`,
    build,
    resources: body.resources,
    command: runtime.command,
    env: [`SVC_ENVD_CONTROL=${controlToken}`],
    runtimeDirectory: runtime.directory,
    resolver: deps.resolver,
  });
  teardown.add("container", () => deps.containers.remove(containerId));
  const { resources } = body;
  return {
    containerId,
    controlToken,
    build,
    resources,
    runtime: runtime.directory,
    upperDirectory: undefined,
    createdAt,
  };
}
