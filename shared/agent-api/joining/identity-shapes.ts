/** Who answers at an agent API. */

import { type Static, Type } from "typebox";
import { contract } from "../../http/contract.ts";

/** A node, and one run of its agent. */
export const AgentRun = Type.Object({ nodeId: Type.String(), serviceInstanceId: Type.String() });
export type AgentRun = Static<typeof AgentRun>;

/** Called by the orchestrator before it gives a node sandboxes. */
export const identityApi = contract({
  identity: {
    method: "GET",
    path: "/v1/identity",
    summary: "Which node answers here, and which run of its agent",
    tag: "Nodes",
    access: "node",
    status: 200,
    reply: AgentRun,
  },
});
