/**
 * A sandbox that ends while its memory is stored, or right after that failed, was ended by it: CRIU works inside of its
 * processes, and when CRIU is killed they go on from wherever it had them. What the sandbox has on the disk is kept then, as
 * a pause without memory that its node made by itself.
 */

import { randomUUID } from "node:crypto";
import { Teardown } from "../../../shared/program/teardown.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import { captureMemory, diskOf } from "../take/memory-to-disk.ts";
import type { PauseDeps } from "../take/pause.ts";

/** A damaged process ends as soon as it runs again; an end later than this is its own. */
const BLAME_MS = 60_000;

export interface RescueDeps extends Omit<PauseDeps, "envd" | "beforeEnd" | "gate"> {
  readonly gate: Pick<PauseDeps["gate"], "close">;
}

export interface Rescue {
  /** Around every attempt to store the memory of a container. */
  readonly during: <T>(containerId: string, work: () => Promise<T>) => Promise<T>;
  /** Of one whose processes are dead. True: it is stored with its disk, and its execution is over. Never throws. */
  readonly rescue: (sandbox: Sandbox) => Promise<boolean>;
}

export function createRescue(deps: RescueDeps): Rescue {
  const { stores, gate, hot, now, log } = deps;
  /** Since when storing is under way (infinity) or has failed, by container. */
  const blamed = new Map<string, number>();

  const store = async (sandbox: Sandbox, teardown: Teardown) => {
    const { executionId, sandboxId, projectId, container } = sandbox;
    const snapshotId = randomUUID();
    const sizes = { memoryBytes: 0, diskBytes: 0, capturedAt: now() };
    const common = { id: snapshotId, kind: "pause" as const, sandboxId, executionId, projectId };
    stores.snapshots.intend({
      ...common,
      state: "capturing",
      image: undefined,
      memory: false,
      disk: diskOf(container),
      ...sizes,
    });
    teardown.add("row", () => stores.snapshots.remove(snapshotId));
    const capture = { snapshotId, memory: false, kind: "pause" as const, image: undefined };
    const stored = await captureMemory(sandbox, capture, { teardown, deps });
    stores.snapshots.keep(snapshotId, stored, () => stores.executions.stop(executionId, now()));
    teardown.release();
    log.warn(
      { sandboxId, executionId, snapshotId },
      "storing its memory ended the sandbox: its disk is kept as a pause",
    );
    // It is durable: what is left to do is tried again by those who own it.
    gate.close(container.slot).catch((error: unknown) => log.error({ err: error, sandboxId }, "network not closed"));
    hot.drop(container).catch(() => undefined);
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
        log.error({ err: error, sandboxId }, "a sandbox that ended while its memory was stored is lost");
        await teardown.run();
        return false;
      }
    },
  };
}
