/** The identity of this run of the agent, as the orchestrator sees it. */

import type { AgentConfig } from "../config.ts";
import type { Machine } from "../host/machine.ts";
import type { NodeIdentity } from "./heartbeat.ts";

export function identify(
  config: AgentConfig,
  host: Machine,
  run: Pick<NodeIdentity, "serviceInstanceId" | "apiUrl" | "proxyUrl">,
): NodeIdentity {
  return {
    serviceInstanceId: run.serviceInstanceId,
    machine: host.facts,
    machineId: host.id,
    apiUrl: config.agentUrl ?? run.apiUrl,
    proxyUrl: config.proxyUrl ?? run.proxyUrl,
  };
}
