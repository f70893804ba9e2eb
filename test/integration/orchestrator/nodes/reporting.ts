/** Reports of a cluster's node, as a test sends them in place of the fake agent. */

import { type AgentRun, identityApi } from "../../../../shared/agent-api/joining/identity-shapes.ts";
import type { Heartbeat } from "../../../../shared/agent-api/routes.ts";
import type { Cluster } from "../../../support/cluster/cluster.ts";
import { fakeHeartbeat } from "../../../support/fakes/fake-heartbeat.ts";

/** What the cluster's first node says now. */
export async function reportOf({ agent }: Pick<Cluster, "agent">): Promise<Heartbeat> {
  const headers = { authorization: `Bearer ${agent.tokens.orchestratorToken}` };
  const answer = await fetch(`${agent.url}${identityApi.identity.path}`, { headers });
  // Another run of the agent would be a second agent with the node's name.
  const { serviceInstanceId } = (await answer.json()) as AgentRun;
  const { served } = agent.serving;
  const now = fakeHeartbeat({
    nodeId: agent.nodeId,
    url: agent.url,
    serviceInstanceId,
    address: "127.0.0.1",
    options: {},
    live: [...agent.live.values()],
    snapshots: [...agent.snapshots.values()],
  });
  return { ...now, ...(served === undefined ? {} : { store: served }) };
}
