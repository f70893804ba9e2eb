/** Which lease a node has: the answers to its reports give it, and operators read its end. */

import { networkInterfaces } from "node:os";
import type { NodeView } from "../nodes/entry.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { leaseMs } from "./lease.ts";

interface LeasesDeps {
  readonly nodes: Pick<Nodes, "hasOthers" | "place">;
  /** Whether no other orchestrator can use the database. */
  readonly alone: boolean;
  readonly nodeLostMs: number;
}

export interface Leases {
  /** For how long the node's sandboxes may run without another answer; undefined: it has no lease. */
  forMs(node: Pick<NodeView, "id" | "facts">): number | undefined;
}

export function createLeases({ nodes, alone, nodeLostMs }: LeasesDeps): Leases {
  return {
    forMs: ({ id, facts: { apiUrl } }) =>
      leaseMs({
        apiUrl,
        hasOthers: nodes.hasOthers(id),
        alone,
        sameHost: nodes.place(id)?.sameHost === true,
        ownAddresses,
        nodeLostMs,
      }),
  };
}

function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address));
}
