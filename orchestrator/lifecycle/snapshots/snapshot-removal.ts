/**
 * Asks nodes to delete snapshots, and asks again where a node did not answer. When this process ends before, reconciliation finds the
 * snapshot in the node's next report.
 */

import { LRUCache } from "lru-cache";
import { atMost } from "../../../shared/program/at-most.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Background } from "../../base/background.ts";
import type { Nodes } from "../../nodes/nodes.ts";

export interface SnapshotRemover {
  /** Resolves when the node has deleted it or the time limit has passed; never throws. */
  remove(nodeId: string, snapshotId: string): Promise<void>;
  /** The same, without waiting. */
  removeSoon(nodeId: string, snapshotId: string): void;
  /** Begins to ask again for what nodes did not delete, of those nodes that report now. */
  again(): void;
}

export interface SnapshotRemoverDeps {
  readonly nodes: Nodes;
  readonly background: Background;
  /** The snapshots that records of a node's sandboxes name. */
  readonly neededOn: (nodeId: string) => Promise<ReadonlySet<string>>;
  readonly log: Log;
  readonly timeoutMs: number;
}

/** Removals that are asked for again; of more, the oldest are left to reconciliation, which takes longer. */
const REMEMBERED = 10_000;
/** Removals of one round. */
const AT_ONCE = 100;

export function createSnapshotRemover(deps: SnapshotRemoverDeps): SnapshotRemover {
  const { nodes, background, log, timeoutMs } = deps;
  /** The nodes of snapshots that are to be asked for again. */
  const left = new LRUCache<string, string>(atMost(REMEMBERED));

  async function ask(nodeId: string, snapshotId: string, level: "warn" | "debug"): Promise<void> {
    try {
      await nodes.agent(nodeId).deleteSnapshot({ params: { snapshotId } }, { timeoutMs });
    } catch (error) {
      left.set(snapshotId, nodeId);
      log[level]({ err: error, nodeId, snapshotId }, "could not ask a node to delete a snapshot");
    }
  }

  async function askAgain(nodeId: string, snapshotIds: readonly string[]): Promise<void> {
    // A drain may have brought a sandbox back to the node, with the snapshot that it resumes from.
    const needed = await deps.neededOn(nodeId).catch((error: unknown) => {
      for (const snapshotId of snapshotIds) left.set(snapshotId, nodeId);
      throw error;
    });
    const unneeded = snapshotIds.filter((snapshotId) => !needed.has(snapshotId));
    await Promise.all(unneeded.map((snapshotId) => ask(nodeId, snapshotId, "debug")));
  }

  const remove = (nodeId: string, snapshotId: string) => ask(nodeId, snapshotId, "warn");
  return {
    remove,
    removeSoon: (nodeId, snapshotId) => background.run("remove snapshot", () => remove(nodeId, snapshotId)),
    again() {
      let begun = 0;
      const asked = new Map<string, string[]>();
      // A list: the loop takes entries out of the map.
      const oldestFirst = [...left.rkeys()];
      for (const snapshotId of oldestFirst) {
        if (begun === AT_ONCE) break;
        const nodeId = left.peek(snapshotId) ?? "";
        const status = nodes.get(nodeId)?.status;
        if (status === "unhealthy" || status === "connecting") continue;
        left.delete(snapshotId);
        // An operator removed the node.
        if (status === undefined) continue;
        begun++;
        asked.set(nodeId, [...(asked.get(nodeId) ?? []), snapshotId]);
      }
      for (const [nodeId, ids] of asked) background.run("remove snapshots", () => askAgain(nodeId, ids));
    },
  };
}
