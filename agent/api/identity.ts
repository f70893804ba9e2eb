/** The identity of this run of the agent, as the orchestrator sees it. */

import { randomUUID } from "node:crypto";
import type { AgentConfig } from "../config.ts";
import type { Machine } from "../host/machine.ts";
import type { NodeIdentity } from "./heartbeat.ts";

export function identify(
  config: AgentConfig,
  deps: { readonly machine: Pick<Machine, "facts" | "id"> },
  reached: Pick<NodeIdentity, "apiUrl" | "proxyUrl">,
): NodeIdentity {
  return {
    serviceInstanceId: randomUUID(),
    machine: deps.machine.facts,
    machineId: deps.machine.id,
    apiUrl: config.agentUrl ?? reached.apiUrl,
    proxyUrl: config.proxyUrl ?? reached.proxyUrl,
  };
}
