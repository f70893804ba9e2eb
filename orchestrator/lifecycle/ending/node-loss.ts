/**
 * Settles what a lost or removed node leaves of its sandboxes, also in the middle of a change. What was only there ends. A sandbox that
 * was about to leave its pause is paused again, where its snapshot outlives the node. The node may run the sandbox all the same, so the
 * record gets another execution id: when the node is back, reconciliation ends what it runs under the former one. Which nodes have a
 * snapshot beside the lost one is known by their reports: a resume may have fetched it from there.
 */

import type { Heartbeat } from "../../../shared/agent-api/routes.ts";
import type { NodeStatus } from "../../../shared/api/nodes/nodes.ts";
import { AppError, isError } from "../../../shared/http/errors.ts";
import { newExecutionId } from "../../../shared/ids.ts";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import { ofNodes } from "../../nodes/of-nodes.ts";
import type { Aim } from "../../store/operations/record.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Core } from "../core.ts";
import { afterLoss } from "../record-state.ts";
import type { Ending } from "./kill.ts";

export interface NodeLoss {
  /** Remembers which snapshots a node has, from its report. */
  heard(report: Pick<Heartbeat, "node" | "snapshots">): void;
  /** The node counts as lost, and may come back. False: nothing was to settle, or another orchestrator works on the sandbox. */
  lost(record: SandboxRecord): Promise<boolean>;
  /** An operator removed the node, so what waits for it and paused sandboxes that were only there end too. False: as `lost`. */
  removed(record: SandboxRecord): Promise<boolean>;
}

interface NodeLossDeps {
  readonly core: Pick<Core, "store" | "nodes" | "log">;
  readonly ending: Pick<Ending, "nodeLost">;
}

/** What the sandbox was doing, for its event. */
const DOING: { readonly [State in SandboxState]?: string } = {
  pausing: "it was being paused",
  snapshotting: "a snapshot of it was being taken",
  rewinding: "it was being rewound",
};
/** States of a node that starts what it has, and lets others read it. */
const LIVING: ReadonlySet<NodeStatus | undefined> = new Set(["ready", "standby", "draining"]);
const REMOVED = "an operator removed its node";

export function createNodeLoss({ core, ending }: NodeLossDeps): NodeLoss {
  const { store, nodes, log } = core;
  /** The snapshots of each node's last report to this orchestrator. */
  const reported = ofNodes<readonly string[]>((nodeId) => nodes.get(nodeId) !== undefined);

  /** Where else than on its node is what the sandbox was paused with: the node that its record names then. Undefined: nowhere. */
  async function elsewhere({ id, nodeId, state, snapshot, volumeMounts }: SandboxRecord): Promise<string | undefined> {
    // Its volumes are on the node.
    if (snapshot === undefined || volumeMounts.length > 0) return undefined;
    // The next start fetches it from the store.
    if ((await store.blobRefs.of(snapshot.id)) !== undefined) return nodeId;
    // The node that is drained keeps it until the sandbox runs on the other one, and the drain brings it back.
    const home = await store.drains.movedFrom(id);
    if (home !== undefined && home !== nodeId && nodes.get(home) !== undefined) return nodeId;
    // The node that gave it for this start keeps it as long as a record names it.
    return state === "starting" ? holderOf(snapshot.id, nodeId) : undefined;
  }

  function holderOf(snapshotId: string, except: string): string | undefined {
    const holders = nodes
      .list()
      .filter(
        ({ id, status }) => id !== except && LIVING.has(status) && reported.get(id)?.includes(snapshotId) === true,
      );
    // A node that is drained gives what it gets away again.
    return (holders.find(({ status }) => status !== "draining") ?? holders[0])?.id;
  }

  /**
   * False: another orchestrator works on it. What this one still asks the node for finds the record moved.
   * @param to the node that its record names from now on
   */
  async function pauseAgain({ id, executionId, nodeId, state }: SandboxRecord, to: string): Promise<boolean> {
    const [aim, doing]: [Aim, string] = state === "rewinding" ? ["rewinding", "rewound"] : ["running", "resumed"];
    try {
      await store.operations.take(id, aim, [state]);
    } catch (error) {
      if (isError(error, "conflict")) return false;
      throw error;
    }
    const paused = await store.move({
      id,
      to: "paused",
      when: { executionId, nodeId, from: [state] },
      set: {
        resumption: null,
        rewind: null,
        // The execution of a rewind is not the record's yet: that is still the paused one, whose logs the node keeps.
        ...(state === "starting" ? { executionId: newExecutionId(), nodeId: to } : {}),
      },
      failure: new AppError(
        "node_unreachable",
        `node ${nodeId} was lost while sandbox "${id}" was being ${doing} there: it is paused again`,
      ),
    });
    if (paused === undefined) return false;
    log.warn(
      { sandboxId: id, nodeId, to, from: state },
      "paused a sandbox again that was about to start on a lost node",
    );
    return true;
  }

  return {
    heard({ node: { nodeId }, snapshots }) {
      // Every report of every node comes here, and a loss is rare: a list is cheaper to make than a set.
      reported.set(
        nodeId,
        snapshots.map(({ snapshotId }) => snapshotId),
      );
    },

    async lost(record) {
      switch (afterLoss(record)) {
        case "ends":
          return ending.nodeLost(record, DOING[record.state]);
        case "paused":
          return pauseAgain(record, record.nodeId);
        case "elsewhere": {
          const to = await elsewhere(record);
          return to !== undefined && pauseAgain(record, to);
        }
        case "stays":
          return false;
      }
    },

    async removed(record) {
      const after = record.state === "paused" ? "paused" : afterLoss(record);
      const mayOutlive = after === "paused" || after === "elsewhere";
      const to = mayOutlive ? await elsewhere(record) : undefined;
      if (to === undefined) return ending.nodeLost(record, REMOVED);
      return record.state !== "paused" && pauseAgain(record, to);
    },
  };
}
