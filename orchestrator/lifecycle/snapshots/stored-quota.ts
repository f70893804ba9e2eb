/**
 * The quota of a project over all nodes: what it stores, what snapshots under way may fill, and the expected size of a new
 * one must fit. The sizes are those that nodes have reported; each node has quotas of its own beside this one.
 */

import { AppError } from "../../../shared/http/errors.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Room } from "../../store/storage/quota.ts";
import type { StorageStore } from "../../store/storage/storage.ts";

type Source = Pick<SandboxRecord, "projectId" | "nodeId" | "executionId" | "memoryMB">;

export interface ProjectQuota {
  /**
   * The room for a snapshot of this sandbox with memory, which the move to its transition reserves.
   * @param replacedBytes stored bytes that are deleted when the new snapshot is durable
   * @throws {AppError} no_space
   */
  admit(source: Source, replacedBytes?: number): Promise<Room>;
  /** @throws {AppError} no_space when the project has not the room (any more) */
  check(source: Pick<Source, "projectId">, room: Room): Promise<void>;
}

export interface ProjectQuotaDeps {
  readonly storage: StorageStore;
  readonly nodes: Nodes;
  readonly log: Log;
  readonly quotaBytes: number;
}

const MIB = 1024 ** 2;
/** Limit of the question how much a sandbox uses. A busy node answers late, and a snapshot that counts with all its memory may be refused. */
const SAMPLE_MS = 10_000;

export function createProjectQuota({ storage, nodes, log, quotaBytes }: ProjectQuotaDeps): ProjectQuota {
  /** What the sandbox used at the node's last sample; without one, all the memory that it may use. */
  async function expected({ nodeId, executionId, memoryMB }: Source): Promise<number> {
    try {
      const samples = await nodes
        .agent(nodeId)
        .latestMetrics({ body: { executionIds: [executionId] } }, { timeoutMs: SAMPLE_MS });
      const sample = samples[executionId];
      if (sample !== undefined) return sample.memUsed + sample.diskUsed;
    } catch (error) {
      log.debug({ err: error, nodeId, executionId }, "no sample of a sandbox; its snapshot counts with all its memory");
    }
    return memoryMB * MIB;
  }

  async function check({ projectId }: Pick<Source, "projectId">, { bytes }: Room): Promise<void> {
    const stored = await storage.projectBytes(projectId);
    if (stored + bytes > quotaBytes) throw refusal({ stored, bytes, quotaBytes });
  }

  return {
    async admit(source, replacedBytes = 0) {
      const room = { bytes: Math.max(0, (await expected(source)) - replacedBytes), quotaBytes };
      await check(source, room);
      return room;
    },
    check,
  };
}

function refusal({ stored, bytes, quotaBytes }: Room & { readonly stored: number }): AppError {
  return new AppError(
    "no_space",
    `the project's quota of ${mib(quotaBytes)} for stored snapshots on all nodes (SVC_PROJECT_STORED_QUOTA_MB) is used up: ` +
      `its snapshots and paused sandboxes take ${mib(stored)}, and this one would add up to ${mib(bytes)}; ` +
      "delete snapshots or paused sandboxes of the project, or pause without memory",
  );
}

function mib(bytes: number): string {
  return `${Math.ceil(bytes / MIB)} MiB`;
}
