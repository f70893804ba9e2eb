/** Resumes a paused sandbox whose container is still frozen in memory, by a thaw. */

import { Teardown } from "../../../shared/program/teardown.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import { becomeSandbox, type Launched } from "../../sandboxes/become-sandbox.ts";
import type { FromSnapshot } from "../../sandboxes/start.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import type { OutsideConnections } from "../connections/outside.ts";
import { clearLinks } from "../store/clear-links.ts";
import { pausedSnapshot, type ResumeDeps } from "./resume.ts";

export interface ThawDeps extends ResumeDeps {
  readonly outside: OutsideConnections;
}

/** Undefined when there is no frozen container any more, or the request is not for its memory. */
export async function thawPaused(
  spec: FromSnapshot,
  deps: ThawDeps,
  signal: AbortSignal,
): Promise<Launched | undefined> {
  const { origin, body } = spec;
  const snapshot = pausedSnapshot(origin, body, deps);
  const container = deps.frozen.take(snapshot.id);
  if (container === undefined) return undefined;
  if (origin.memory) return thaw(spec, { snapshot, container }, deps, signal);
  await deps.frozen.drop(container);
  return undefined;
}

/** Undefined when the thawed sandbox did not answer in time: then its memory is restored from the disk. */
async function thaw(
  spec: FromSnapshot,
  { snapshot, container }: { readonly snapshot: Snapshot; readonly container: LiveContainer },
  deps: ThawDeps,
  signal: AbortSignal,
): Promise<Launched | undefined> {
  const { frozen, stores, gate, log } = deps;
  const { id } = snapshot;
  const teardown = new Teardown(log);
  teardown.add("freeze", async () => {
    // The next resume gets this container, not the stored memory: its processes may have run and changed the disk.
    try {
      await container.cgroup.freeze();
    } finally {
      // Also a container that has just died: the next resume removes its remains before it restores the memory.
      frozen.add(id, container, true);
    }
  });
  try {
    return await becomeSandbox(
      spec,
      {
        containerId: container.id,
        warm: false,
        restored: "frozen",
        watches: true,
        intend: (addRow) => stores.snapshots.setResuming(id, true, addRow),
        async run() {
          await deps.outside.ended(container);
          container.cgroup.thaw();
          teardown.add("network", () => gate.close(container.slot));
          return container;
        },
        // Not earlier, because a restore of the memory, which could become necessary until here, needs these names.
        confirm: () => clearLinks(container, id, { ...deps.memory, log }),
        record: (_container, markRunning) => stores.snapshots.spend(id, markRunning),
      },
      deps,
      { teardown, signal },
    );
  } catch (error) {
    await teardown.run();
    // A node that cannot restore memory keeps the frozen container: the next resume tries it again.
    if (signal.aborted || deps.memoryRefusal("a resume with memory") !== undefined) throw error;
    log.warn({ err: error, snapshotId: id }, "frozen container is not usable, restoring its memory");
    const again = frozen.take(id);
    if (again !== undefined) await frozen.drop(again);
    return undefined;
  }
}
