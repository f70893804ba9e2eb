/** Handlers of the operators' routes about the database that a node serves, and about what the node holds. */

import type { nodeStoreApi } from "../../shared/api/nodes/nodes.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { iso } from "../forms/time.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Adoption } from "./adoption.ts";

interface NodeStoreDeps {
  readonly adoption: Adoption;
  readonly nodes: Nodes;
}

export function createNodeStoreHandlers({ adoption, nodes }: NodeStoreDeps): Handlers<typeof nodeStoreApi> {
  return {
    async getNodeStore({ params: { nodeID } }) {
      const { executions, snapshots, refusal: own } = await adoption.holdings(nodeID);
      const refusal = own ?? nodes.refused(nodeID) ?? null;
      const used = snapshots.filter(({ held }) => held === undefined);
      const pauses = used.filter(({ kind }) => kind === "pause").length;
      return {
        serves: refusal === null,
        refusal,
        sandboxes: executions.length + pauses,
        snapshots: used.length - pauses,
        held: snapshots.flatMap(({ snapshotId, sandboxId, kind, memoryBytes, diskBytes, held }) =>
          held === undefined
            ? []
            : [
                {
                  snapshotID: snapshotId,
                  sandboxID: sandboxId,
                  kind,
                  bytes: memoryBytes + diskBytes,
                  heldSince: iso(held.since),
                  heldUntil: iso(held.until),
                  reason: held.reason,
                },
              ],
        ),
      };
    },
    adoptNode: async ({ params, body }) => toBody(await adoption.adopt(params.nodeID, body.projectID)),
    discardNode: ({ params }) => adoption.discard(params.nodeID),
    takeBack: async ({ params, body }) => toBody(await adoption.takeBack(params.nodeID, params.heldID, body.projectID)),
  };
}

function toBody({ left, incomplete, ...counts }: Awaited<ReturnType<Adoption["adopt"]>>) {
  return { ...counts, left: [...left], incomplete: [...incomplete] };
}
