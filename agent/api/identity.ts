/** The identity of this run of the agent, as the orchestrator sees it. */

import { randomUUID } from "node:crypto";
import type { AgentConfig } from "../config.ts";
import type { Machine } from "../host/machine.ts";
import type { NodeIdentity } from "./heartbeat.ts";

export function identify(
  config: AgentConfig,
  host: Machine,
  reached: Pick<NodeIdentity, "apiUrl" | "proxyUrl">,
): NodeIdentity {
  return {
    serviceInstanceId: randomUUID(),
    machine: host.facts,
    machineId: host.id,
    apiUrl: config.agentUrl ?? reached.apiUrl,
    proxyUrl: config.proxyUrl ?? reached.proxyUrl,
  };
}
