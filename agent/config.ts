/** Reads the agent's settings, which `shared/settings/agent.ts` lists, from the environment. */

import { readConfig } from "../shared/program/config.ts";
import { AgentConfig } from "../shared/settings/agent.ts";
import { OrchestratorConfig } from "../shared/settings/orchestrator.ts";
import { ScriptSettings } from "../shared/settings/scripts.ts";

export { AgentConfig };

/** Settings of other programs may be in the same environment. A name that no program knows is an error. */
export function readAgentConfig(environment: NodeJS.ProcessEnv): AgentConfig {
  return readConfig(AgentConfig, environment, { others: [OrchestratorConfig, ScriptSettings] });
}
