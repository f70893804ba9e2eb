/**
 * Settles what a lost or removed node leaves of its sandboxes, also in the middle of a change. What was only there ends. A sandbox that
 * was about to leave its pause is paused again, where its snapshot outlives the node. The node may run the sandbox all the same, so the
 * record gets another execution id: when the node is back, reconciliation ends what it runs under the former one.
 */

import { AppError, isError } from "../../../shared/http/errors.ts";
import { newExecutionId } from "../../../shared/ids.ts";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import type { Aim } from "../../store/operations/record.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Core } from "../core.ts";
import { afterLoss } from "../record-state.ts";
import type { Ending } from "./kill.ts";

export interface NodeLoss {
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
const REMOVED = "an operator removed its node";

export function createNodeLoss({ core, ending }: NodeLossDeps): NodeLoss {
  const { store, nodes, log } = core;

  /** Whether something else than its node has what the sandbox was paused with. */
  async function isElsewhere({ id, nodeId, snapshot, volumeMounts }: SandboxRecord): Promise<boolean> {
    // Its volumes are on the node.
    if (snapshot === undefined || volumeMounts.length > 0) return false;
    if ((await store.blobRefs.of(snapshot.id)) !== undefined) return true;
    // The node that is drained keeps it until the sandbox runs on the other one.
    const home = await store.drains.movedFrom(id);
    return home !== undefined && home !== nodeId && nodes.get(home) !== undefined;
  }

  /** False: another orchestrator works on it. What this one still asks the node for finds the record moved. */
  async function pauseAgain({ id, executionId, nodeId, state }: SandboxRecord): Promise<boolean> {
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
        ...(state === "starting" ? { executionId: newExecutionId() } : {}),
      },
      failure: new AppError(
        "node_unreachable",
        `node ${nodeId} was lost while sandbox "${id}" was being ${doing} there: it is paused again`,
      ),
    });
    if (paused === undefined) return false;
    log.warn({ sandboxId: id, nodeId, from: state }, "paused a sandbox again that was about to start on a lost node");
    return true;
  }

  return {
    async lost(record) {
      switch (afterLoss(record)) {
        case "ends":
          return ending.nodeLost(record, DOING[record.state]);
        case "paused":
          return pauseAgain(record);
        case "elsewhere":
          return (await isElsewhere(record)) && pauseAgain(record);
        case "stays":
          return false;
      }
    },

    async removed(record) {
      const after = record.state === "paused" ? "paused" : afterLoss(record);
      const mayOutlive = after === "paused" || after === "elsewhere";
      if (!mayOutlive || !(await isElsewhere(record))) return ending.nodeLost(record, REMOVED);
      return record.state !== "paused" && pauseAgain(record);
    },
  };
}
