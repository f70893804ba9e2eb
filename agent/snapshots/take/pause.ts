/** Turns a sandbox without a route into a durable snapshot; after a failure the sandbox runs on as before. */

import type { TakenSnapshot } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import { noTiming } from "../../../shared/program/tracing/timing.ts";
import type { Gate } from "../../network/gate.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import type { Stores } from "../../store/stores.ts";
import type { OutsideConnections } from "../connections/outside.ts";
import type { FrozenContainers } from "../frozen/frozen.ts";
import { freezeBeside } from "./freeze.ts";
import type { CheckpointMemoryDeps, SnapshotRequest } from "./memory-to-disk.ts";
import { checkpointMemory, diskOf, toTakenSnapshot } from "./memory-to-disk.ts";
import { refuseTraced } from "./traced.ts";

export interface PauseDeps extends CheckpointMemoryDeps {
  readonly stores: Stores;
  readonly gate: Gate;
  readonly frozen: FrozenContainers;
  readonly outside: OutsideConnections;
  /** Reads the last log lines. Never throws, and its time is limited. */
  readonly beforeEnd: (sandbox: Sandbox) => Promise<void>;
}

const NETWORK_NOT_HELD =
  "the sandbox's network could not be closed for its pause now; the sandbox goes on running: try again";

export async function pause(sandbox: Sandbox, request: SnapshotRequest, deps: PauseDeps): Promise<TakenSnapshot> {
  const { stores, gate, frozen, now, log } = deps;
  const { containers, envd } = deps.docker;
  const { executionId, sandboxId, projectId, container, egress, record } = sandbox;
  const { snapshotId, memory, timing = noTiming } = request;
  const at = { address: container.slot.address, controlToken: container.controlToken };
  const teardown = new Teardown(log);
  try {
    if (memory) refuseTraced(container.cgroup.processes());
    stores.snapshots.intend({
      id: snapshotId,
      kind: "pause",
      state: "taking",
      sandboxId,
      executionId,
      projectId,
      disk: diskOf(container),
      image: undefined,
      memory,
      memoryBytes: 0,
      diskBytes: 0,
      takenAt: now(),
      record,
    });
    teardown.add("row", () => stores.snapshots.remove(snapshotId));

    if (memory) teardown.add("watches", () => envd.resumeWatches(at));
    const envdReady = async () =>
      Promise.all([
        deps.beforeEnd(sandbox),
        // A failure does not stop the pause: CRIU may be able to dump a sandbox that has stopped its envd.
        memory &&
          envd
            .suspendWatches(at)
            .catch((error: unknown) =>
              log.warn({ err: error, sandboxId }, "could not suspend the watches of a sandbox, pausing anyway"),
            ),
      ]);
    await timing.measure("envd", envdReady);
    teardown.add("network", () => gate.open(container.slot, { executionId, sandboxId }, egress));
    teardown.add("freeze", () => container.cgroup.thaw());
    const held = gate.hold(container.slot).catch((cause: unknown) => {
      throw new AppError("unavailable", NETWORK_NOT_HELD, { cause });
    });
    await timing.measure("freeze", () => freezeBeside(container.cgroup, held));

    const stored = await checkpointMemory(
      sandbox,
      { ...request, kind: "pause", image: undefined },
      { teardown, deps, steps: { meanwhile: () => containers.flushDisk(container.id) } },
    );
    // From here on the sandbox is paused.
    stores.snapshots.keep(snapshotId, stored, () => stores.executions.stop(executionId, now()));
    teardown.release();
    // Not earlier, because a pause that fails leaves the sandbox its connections.
    if (memory) await timing.measure("connections", () => deps.outside.end(sandbox));
    gate
      .close(container.slot)
      .catch((error: unknown) =>
        log.error({ err: error, sandboxId }, "could not close the network of a paused sandbox"),
      );
    if (memory && request.frozen !== false) frozen.add(snapshotId, container);
    else frozen.discard(snapshotId, container);
    return toTakenSnapshot({ executionId, sandboxId, id: snapshotId, image: undefined, memory, ...stored });
  } catch (error) {
    await teardown.run();
    throw error;
  }
}
