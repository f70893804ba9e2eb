/**
 * Resumes a paused sandbox from its disk: with its stored memory or by a boot, in its own container, or in a new one where
 * Docker has lost it. A failure leaves it paused.
 */

import type { Origin, StartRequest } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import { type BecomeSandboxDeps, becomeSandbox, type Launched } from "../../sandboxes/become-sandbox.ts";
import type { FromSnapshot } from "../../sandboxes/start.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import { ContainerGone } from "../frozen/evict.ts";
import type { FrozenContainers } from "../frozen/frozen.ts";
import { clearLinks } from "../store/clear-links.ts";
import { type InNewContainerDeps, inNewContainer } from "./in-new-container.ts";
import { type RestoreContainerDeps, refuseMemory, restoreContainer } from "./restore.ts";

export interface ResumeDeps extends RestoreContainerDeps, InNewContainerDeps, BecomeSandboxDeps {
  readonly frozen: FrozenContainers;
}

export async function resume(spec: FromSnapshot, deps: ResumeDeps, signal: AbortSignal): Promise<Launched> {
  const { origin, body } = spec;
  const snapshot = pausedSnapshot(origin, body, deps);
  const memory = origin.memory && snapshot.memory;
  if (memory) refuseMemory("a resume with memory", deps);
  await deps.frozen.dropped(snapshot.disk.containerId);
  try {
    if (snapshot.disk.takenFrom === undefined) return await startAgain(spec, { snapshot, memory }, deps, signal);
  } catch (error) {
    // Known only now, because a question to Docker before would delay every resume.
    if (!(error instanceof ContainerGone)) throw error;
  }
  const moved = await inNewContainer(snapshot, deps);
  return startAgain(spec, { snapshot: moved, memory }, deps, signal);
}

/** The snapshot of the paused sandbox. @throws {AppError} snapshot_files_missing, conflict */
export function pausedSnapshot({ snapshotId }: Origin, { sandboxId }: StartRequest, { stores }: ResumeDeps): Snapshot {
  const snapshot = stores.snapshots.get(snapshotId);
  if (snapshot === undefined || snapshot.kind !== "pause" || snapshot.state === "taking")
    throw new AppError("snapshot_files_missing", `this node does not have snapshot ${snapshotId}`);
  if (snapshot.sandboxId !== sandboxId)
    throw new AppError(
      "conflict",
      `snapshot ${snapshot.id} belongs to sandbox ${snapshot.sandboxId}, not to ${sandboxId}`,
    );
  if (snapshot.state === "spent")
    throw new AppError("conflict", `the sandbox was already resumed from snapshot ${snapshot.id}`);
  return snapshot;
}

async function startAgain(
  spec: FromSnapshot,
  { snapshot, memory }: { readonly snapshot: Snapshot; readonly memory: boolean },
  deps: ResumeDeps,
  signal: AbortSignal,
): Promise<Launched> {
  const { stores, gate } = deps;
  const { id, disk } = snapshot;
  const { projectId: owner, volumes = [] } = spec.body;
  const teardown = new Teardown(deps.log);
  const restored = { verified: Promise.resolve() };
  try {
    // Undone last: if this agent dies before that, the next one takes over the processes.
    teardown.add("resuming", () => stores.snapshots.setResuming(id, false));
    return await becomeSandbox(
      spec,
      {
        containerId: disk.containerId,
        warm: false,
        restored: memory ? "memory" : "disk",
        watches: memory,
        intend: (addRow) => stores.snapshots.setResuming(id, memory, addRow),
        async run() {
          const { executionId, timing } = spec;
          const from = { disk, memoryOf: memory ? snapshot : undefined, owner, executionId, volumes, timing };
          const { container, verified } = await restoreContainer(from, deps, { teardown, signal });
          restored.verified = verified;
          if (!memory) await clearLinks(container, id, { ...deps.memory, log: deps.log });
          teardown.add("network", () => gate.close(container.slot));
          return container;
        },
        verified: () => restored.verified,
        record: (container, markRunning) =>
          stores.snapshots.spend(id, () => {
            stores.containers.started(container);
            markRunning();
          }),
      },
      deps,
      { teardown, signal },
    );
  } catch (error) {
    await teardown.run();
    throw error;
  }
}
