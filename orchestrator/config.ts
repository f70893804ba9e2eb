/** Reads the orchestrator's settings, which `shared/settings/orchestrator.ts` lists, from the environment. */

import { readConfig } from "../shared/program/config.ts";
import { AgentConfig } from "../shared/settings/agent.ts";
import { EdgeConfig } from "../shared/settings/edge.ts";
import { OrchestratorConfig } from "../shared/settings/orchestrator.ts";
import { ScriptSettings } from "../shared/settings/scripts.ts";

export { OrchestratorConfig };

/** Settings of other programs may be in the same environment. A name that no program knows is an error. */
export function readOrchestratorConfig(environment: NodeJS.ProcessEnv): OrchestratorConfig {
  return readConfig(OrchestratorConfig, environment, { others: [AgentConfig, EdgeConfig, ScriptSettings] });
}
