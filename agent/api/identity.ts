/** The identity of this run of the agent, as the orchestrator sees it. */

import type { AgentConfig } from "../config.ts";
import type { Machine } from "../host/machine.ts";
import type { NodeIdentity } from "./heartbeat.ts";

export function identify(
  config: AgentConfig,
  deps: { readonly machine: Pick<Machine, "facts" | "id"> },
  run: Pick<NodeIdentity, "serviceInstanceId" | "apiUrl" | "proxyUrl">,
): NodeIdentity {
  return {
    serviceInstanceId: run.serviceInstanceId,
    machine: deps.machine.facts,
    machineId: deps.machine.id,
    apiUrl: config.agentUrl ?? run.apiUrl,
    proxyUrl: config.proxyUrl ?? run.proxyUrl,
  };
}
