/** Takes the snapshot from which the sandboxes of a template start: its build container with the start command running. */

import { randomUUID } from "node:crypto";
import { AppError } from "../../shared/http/errors.ts";
import { OPEN } from "../../shared/policy/egress-policy.ts";
import type { Admission } from "../snapshots/take/admission.ts";
import { type CheckpointDeps, checkpoint } from "../snapshots/take/checkpoint.ts";
import type { SnapshotOutcome, SnapshotSource } from "./build.ts";
import { type BuildContainer, buildContainerId } from "./steps/build-container.ts";

export interface TakeBuildSnapshotDeps {
  readonly taking: Omit<CheckpointDeps, "diskBytes">;
  /** Undefined where this node can store memory. */
  readonly memoryRefusal: (what: string) => AppError | undefined;
  readonly admission: Pick<Admission, "admit" | "diskBytes">;
}

export function takeBuildSnapshot({ taking, memoryRefusal, admission }: TakeBuildSnapshotDeps) {
  return async ({ container }: BuildContainer, { buildId, projectId }: SnapshotSource): Promise<SnapshotOutcome> => {
    const refusal = memoryRefusal("a template with memory");
    if (refusal !== undefined) return { why: refusal.message };
    const snapshotId = randomUUID();
    const sandbox = {
      executionId: buildId,
      sandboxId: buildContainerId(buildId),
      projectId,
      container,
      egress: OPEN,
      startedAt: container.createdAt,
      warm: false,
      restored: "nothing" as const,
      endAt: Number.MAX_SAFE_INTEGER,
      onTimeout: { does: "kill" as const, memory: false },
    };
    try {
      const request = { snapshotId, memory: true };
      const admitted = await admission.admit(sandbox, request, "checkpoint");
      try {
        taking.stores.builds.intendSnapshot(buildId, snapshotId);
        const { diskBytes } = admission;
        const { memory, memoryBytes } = await checkpoint(sandbox, request, { ...taking, diskBytes });
        return { snapshot: { snapshotId, memory, memoryBytes } };
      } finally {
        admitted();
      }
    } catch (error) {
      taking.log.warn({ err: error, buildId }, "could not store the memory of a template");
      return { why: AppError.from(error).message };
    }
  };
}
