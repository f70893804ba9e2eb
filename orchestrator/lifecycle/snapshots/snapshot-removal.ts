/** Asks nodes to delete snapshots. Where a node cannot be reached, reconciliation of its next report deletes them. */

import type { Log } from "../../../shared/program/log.ts";
import type { Background } from "../../base/background.ts";
import type { Nodes } from "../../nodes/nodes.ts";

export interface SnapshotRemover {
  /** Resolves when the node has deleted it or the time limit has passed; never throws. */
  remove(nodeId: string, snapshotId: string): Promise<void>;
  /** The same, without waiting. */
  removeSoon(nodeId: string, snapshotId: string): void;
}

export interface SnapshotRemoverDeps {
  readonly nodes: Nodes;
  readonly background: Background;
  readonly log: Log;
  readonly timeoutMs: number;
}

export function createSnapshotRemover({ nodes, background, log, timeoutMs }: SnapshotRemoverDeps): SnapshotRemover {
  async function remove(nodeId: string, snapshotId: string): Promise<void> {
    try {
      await nodes.agent(nodeId).deleteSnapshot({ params: { snapshotId } }, { timeoutMs });
    } catch (error) {
      log.warn({ err: error, nodeId, snapshotId }, "could not ask a node to delete a snapshot");
    }
  }
  return {
    remove,
    removeSoon: (nodeId, snapshotId) => background.run("remove snapshot", () => remove(nodeId, snapshotId)),
  };
}
