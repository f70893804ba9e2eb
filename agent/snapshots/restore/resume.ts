/**
 * Resumes a paused sandbox in its own container, or in a new one where Docker has lost it: by a thaw, from its memory, or from
 * its disk. A failure leaves it paused.
 */

import type { Origin, StartRequest } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { KeyedMutex } from "../../../shared/program/keyed-mutex.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import type { Launched, LaunchSpec } from "../../sandboxes/launch.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import { clearLinks } from "../clear-links.ts";
import type { OutsideConnections } from "../connections/outside.ts";
import { ContainerGone } from "../frozen/evict.ts";
import type { FrozenContainers } from "../frozen/frozen.ts";
import { type InNewContainerDeps, inNewContainer } from "./in-new-container.ts";
import { intend, type ReinitialiseDeps, reinitialise } from "./reinitialise.ts";
import { type RestoreContainerDeps, type RestoreSpec, refuseMemory, restoreContainer } from "./restore.ts";

export interface ResumeDeps
  extends RestoreContainerDeps,
    ReinitialiseDeps,
    Omit<InNewContainerDeps, "containers" | "stores"> {
  readonly containers: RestoreContainerDeps["containers"] & InNewContainerDeps["containers"];
  readonly frozen: Pick<FrozenContainers, "add" | "take" | "drop" | "dropped">;
  readonly outside: Pick<OutsideConnections, "ended">;
  /** One operation at a time per snapshot. */
  readonly mutex: KeyedMutex;
}

interface Resuming {
  readonly executionId: string;
  readonly body: StartRequest;
  readonly snapshot: Snapshot;
}

export function resume(
  { executionId, body }: LaunchSpec,
  origin: Origin,
  deps: ResumeDeps,
  signal: AbortSignal,
): Promise<Launched> {
  return deps.mutex(origin.snapshotId, async () => {
    const resuming = { executionId, body, snapshot: find(origin, body, deps) };
    const frozen = deps.frozen.take(origin.snapshotId);
    if (frozen !== undefined && origin.memory) {
      const thawed = await thaw(resuming, frozen, deps, signal);
      if (thawed !== undefined) return thawed;
    } else if (frozen !== undefined) await deps.frozen.drop(frozen);
    const memory = origin.memory && resuming.snapshot.memory;
    if (memory) refuseMemory("a resume with memory", deps);
    await deps.frozen.dropped(resuming.snapshot.disk.containerId);
    try {
      if (resuming.snapshot.disk.takenFrom === undefined) return await startAgain(resuming, memory, deps, signal);
    } catch (error) {
      // Known only now, because a question to Docker before would delay every resume.
      if (!(error instanceof ContainerGone)) throw error;
    }
    const snapshot = await inNewContainer(resuming.snapshot, deps);
    return startAgain({ ...resuming, snapshot }, memory, deps, signal);
  });
}

function find(origin: Origin, body: StartRequest, { stores }: Pick<ResumeDeps, "stores">): Snapshot {
  const snapshot = stores.snapshots.get(origin.snapshotId);
  if (snapshot === undefined || snapshot.kind !== "pause" || snapshot.state === "taking")
    throw new AppError("snapshot_files_missing", `this node does not have snapshot ${origin.snapshotId}`);
  if (snapshot.sandboxId !== body.sandboxId)
    throw new AppError(
      "conflict",
      `snapshot ${snapshot.id} belongs to sandbox ${snapshot.sandboxId}, not to ${body.sandboxId}`,
    );
  if (snapshot.state === "spent")
    throw new AppError("conflict", `the sandbox was already resumed from snapshot ${snapshot.id}`);
  return snapshot;
}

/** Undefined when the thawed sandbox did not answer in time: then its memory is restored from the disk. */
async function thaw(
  resuming: Resuming,
  container: LiveContainer,
  deps: ResumeDeps,
  signal: AbortSignal,
): Promise<Launched | undefined> {
  const { snapshot } = resuming;
  const teardown = new Teardown(deps.log);
  teardown.add("freeze", async () => {
    // The next resume gets this container, not the stored memory: its processes may have run and changed the disk.
    try {
      await container.cgroup.freeze();
    } finally {
      // Also one that has just died: what is left of it must go before its memory is restored.
      deps.frozen.add(snapshot.id, container, true);
    }
  });
  try {
    deps.stores.snapshots.setResuming(snapshot.id, true, () => intend(resuming, container.id, deps, teardown));
    await deps.outside.ended(container);
    container.cgroup.thaw();
    const startedAt = await reinitialise({ ...resuming, container, watches: true }, deps, { teardown, signal });
    // Not earlier, because a restore of the memory, which could become necessary until here, needs these names.
    await clearLinks(container, snapshot.id, deps);
    deps.stores.snapshots.spend(snapshot.id, () => deps.stores.executions.markRunning(resuming.executionId, startedAt));
    return { container, startedAt, warm: false, restored: "frozen" };
  } catch (error) {
    await teardown.run();
    // A node that cannot restore memory keeps the frozen container: the next resume tries it again.
    if (signal.aborted || deps.memoryRefusal("a resume with memory") !== undefined) throw error;
    deps.log.warn({ err: error, snapshotId: snapshot.id }, "frozen container is not usable, restoring its memory");
    const again = deps.frozen.take(snapshot.id);
    if (again !== undefined) await deps.frozen.drop(again);
    return undefined;
  }
}

async function startAgain(
  resuming: Resuming,
  memory: boolean,
  deps: ResumeDeps,
  signal: AbortSignal,
): Promise<Launched> {
  const { executionId, snapshot } = resuming;
  const teardown = new Teardown(deps.log);
  try {
    // Undone last: if this agent dies before that, the next one takes over the processes.
    teardown.add("resuming", () => deps.stores.snapshots.setResuming(snapshot.id, false));
    deps.stores.snapshots.setResuming(snapshot.id, memory, () =>
      intend(resuming, snapshot.disk.containerId, deps, teardown),
    );
    const from: RestoreSpec = {
      disk: snapshot.disk,
      memoryOf: memory ? snapshot : undefined,
      owner: resuming.body.projectId,
      volumes: resuming.body.volumes ?? [],
    };
    const { container, verified } = await restoreContainer(from, deps, { teardown, signal });
    if (!memory) await clearLinks(container, snapshot.id, deps);
    const startedAt = await reinitialise({ ...resuming, container, watches: memory }, deps, { teardown, signal });
    await verified;
    deps.stores.snapshots.spend(snapshot.id, () => {
      deps.stores.containers.started(container);
      deps.stores.executions.markRunning(executionId, startedAt);
    });
    teardown.release();
    return { container, startedAt, warm: false, restored: memory ? "memory" : "disk" };
  } catch (error) {
    await teardown.run();
    throw error;
  }
}
