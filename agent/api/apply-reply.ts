/** Carries out the orchestrator's answer to a heartbeat, in the background. */

import type { HeartbeatReply } from "../../shared/agent-api/routes.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Pool } from "../sandboxes/pool/pool.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { Snapshots } from "../snapshots/store/snapshots.ts";

export function applyReply(
  { pools, stop, endAt, deleteSnapshots }: HeartbeatReply,
  { pool, sandboxes, snapshots, log }: { pool: Pool; sandboxes: Sandboxes; snapshots: Snapshots; log: Log },
): void {
  pool.setTargets(pools);
  for (const executionId of stop) {
    sandboxes
      .stop(executionId)
      .catch((error: unknown) => log.error({ err: error, executionId }, "could not stop an execution"));
  }
  for (const snapshotId of deleteSnapshots) {
    snapshots
      .delete(snapshotId)
      .catch((error: unknown) => log.error({ err: error, snapshotId }, "could not delete a snapshot"));
  }
  for (const [executionId, at] of Object.entries(endAt)) {
    if (sandboxes.get(executionId) !== undefined) sandboxes.setEndAt(executionId, at);
  }
}
