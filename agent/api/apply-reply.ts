/** Carries out the orchestrator's answer to a heartbeat, in the background. */

import type { HeartbeatReply } from "../../shared/agent-api/routes.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Blobs } from "../blobs/host-blobs.ts";
import type { Pool } from "../sandboxes/pool/pool.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";
import type { Uploads } from "../snapshots/beyond/uploads.ts";
import type { Holding } from "../snapshots/store/holding.ts";
import type { SnapshotTaker } from "../snapshots/take/snapshot-taker.ts";
import type { BuildStore } from "../store/builds.ts";

export interface ApplyReplyDeps {
  readonly pool: Pick<Pool, "setTargets">;
  readonly sandboxes: Pick<Sandboxes, "stop" | "get" | "setEndAt">;
  readonly holding: Pick<Holding, "hold" | "holdExecution">;
  readonly uploads: Pick<Uploads, "again">;
  readonly imageUploads: Pick<Uploads, "again">;
  readonly stores: { readonly builds: Pick<BuildStore, "own"> };
  readonly taker: Pick<SnapshotTaker, "pause">;
  readonly blobs: Pick<Blobs, "everyNodeReadsZstd">;
  readonly log: Log;
}

export function applyReply(
  { pools, stop, hold = [], endAt, deleteSnapshots, uploadAgain = [], owners = {}, zstdBlobs = false }: HeartbeatReply,
  { pool, sandboxes, holding, uploads, imageUploads, stores, taker, blobs, log }: ApplyReplyDeps,
): void {
  blobs.everyNodeReadsZstd(zstdBlobs);
  pool.setTargets(pools);
  for (const executionId of stop) {
    log.warn({ executionId }, "stopping an execution that has ended by its record");
    sandboxes
      .stop(executionId)
      .catch((error: unknown) => log.error({ err: error, executionId }, "could not stop an execution"));
  }
  for (const executionId of hold) {
    holding
      .holdExecution(executionId, "the orchestrator has no record of the sandbox", taker)
      .catch((error: unknown) => log.error({ err: error, executionId }, "could not hold a sandbox without a record"));
  }
  for (const snapshotId of deleteSnapshots) {
    holding
      .hold(snapshotId, "no record of the orchestrator names the snapshot")
      .catch((error: unknown) => log.error({ err: error, snapshotId }, "could not hold a snapshot"));
  }
  for (const id of uploadAgain) {
    uploads.again(id);
    imageUploads.again(id);
  }
  for (const [buildId, projectId] of Object.entries(owners)) stores.builds.own(buildId, projectId);
  for (const [executionId, at] of Object.entries(endAt)) {
    if (sandboxes.get(executionId) !== undefined) sandboxes.setEndAt(executionId, at);
  }
}
