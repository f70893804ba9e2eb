/**
 * Keeps the disk of a sandbox that ends during a dump, or right after a failed one, as if the node had paused it
 * without memory. The dump causes such an end: CRIU runs code inside the sandbox's processes, and a killed CRIU leaves
 * them in the middle of that code.
 */

import { randomUUID } from "node:crypto";
import { Teardown } from "../../../shared/program/teardown.ts";
import type { Gate } from "../../network/gate.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import type { Stores } from "../../store/stores.ts";
import type { FrozenContainers } from "../frozen/frozen.ts";
import { type CheckpointMemoryDeps, checkpointMemory, diskOf } from "../take/memory-to-disk.ts";

/** A damaged process ends as soon as it runs again; a later end has another cause. */
const BLAME_MS = 60_000;

export interface RescueDeps extends CheckpointMemoryDeps {
  readonly stores: Stores;
  readonly gate: Gate;
  readonly frozen: FrozenContainers;
}

export interface Rescue {
  /** Called around every dump of a container. */
  readonly during: <T>(containerId: string, work: () => Promise<T>) => Promise<T>;
  /** For a sandbox whose processes are dead. True: its disk is stored, and its execution is over. Never throws. */
  readonly rescue: (sandbox: Sandbox) => Promise<boolean>;
}

export function createRescue(deps: RescueDeps): Rescue {
  const { stores, gate, frozen, now, log } = deps;
  /** Start of the present dump (infinity), or end of the failed one, by container. */
  const blamed = new Map<string, number>();

  const store = async (sandbox: Sandbox, teardown: Teardown) => {
    const { executionId, sandboxId, projectId, container, record } = sandbox;
    const snapshotId = randomUUID();
    const sizes = { memoryBytes: 0, diskBytes: 0, takenAt: now() };
    const common = { id: snapshotId, kind: "pause" as const, sandboxId, executionId, projectId, record };
    stores.snapshots.intend({
      ...common,
      state: "taking",
      image: undefined,
      memory: false,
      disk: diskOf(container),
      ...sizes,
    });
    teardown.add("row", () => stores.snapshots.remove(snapshotId));
    const request = { snapshotId, memory: false, kind: "pause" as const, image: undefined };
    const stored = await checkpointMemory(sandbox, request, { teardown, deps });
    stores.snapshots.keep(snapshotId, stored, () => stores.executions.stop(executionId, now()));
    teardown.release();
    log.warn(
      { sandboxId, executionId, snapshotId },
      "storing its memory ended the sandbox: its disk is kept as a pause",
    );
    // The snapshot is durable from here on; the owners of the remaining steps retry them.
    gate
      .close(container.slot)
      .catch((error: unknown) => log.error({ err: error, sandboxId }, "could not close the network of a sandbox"));
    frozen.drop(container).catch(() => undefined);
  };

  return {
    async during(containerId, work) {
      blamed.set(containerId, Number.POSITIVE_INFINITY);
      try {
        const result = await work();
        blamed.delete(containerId);
        return result;
      } catch (error) {
        for (const [id, until] of blamed) if (until < now()) blamed.delete(id);
        blamed.set(containerId, now() + BLAME_MS);
        throw error;
      }
    },

    async rescue(sandbox) {
      const { container, sandboxId } = sandbox;
      const until = blamed.get(container.id);
      if (until === undefined || until < now()) return false;
      blamed.delete(container.id);
      const teardown = new Teardown(log);
      try {
        await store(sandbox, teardown);
        return true;
      } catch (error) {
        log.error({ err: error, sandboxId }, "could not keep a sandbox that ended while its memory was stored");
        await teardown.run();
        return false;
      }
    },
  };
}
