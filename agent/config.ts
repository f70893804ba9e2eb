/** Reads the agent's settings, which `shared/settings/agent.ts` lists, from the environment. */

import { ConfigError, readConfig } from "../shared/program/config.ts";
import { AgentConfig } from "../shared/settings/agent.ts";
import { OrchestratorConfig } from "../shared/settings/orchestrator.ts";
import { ScriptSettings } from "../shared/settings/scripts.ts";

export { AgentConfig };

/** Settings of other programs may be in the same environment. A name that no program knows is an error. */
export function readAgentConfig(environment: NodeJS.ProcessEnv): AgentConfig {
  const config = readConfig(AgentConfig, environment, { others: [OrchestratorConfig, ScriptSettings] });
  readLabels(config.labels);
  return config;
}

/**
 * `SVC_LABELS`: `key=value,key=value`, where a value may contain `=`.
 * @throws {ConfigError} for a pair that cannot be read: without its label the node would get sandboxes that are not meant for it
 */
export function readLabels(text: string): Record<string, string> {
  const labels = new Map<string, string>();
  for (const pair of text.split(",").map((each) => each.trim())) {
    if (pair === "") continue;
    const [, key = "", value = ""] = /^([^=\s]+)\s*=\s*(.*)$/.exec(pair) ?? [];
    if (key === "") throw new ConfigError([`SVC_LABELS: '${pair}' is not key=value`]);
    if (labels.has(key)) throw new ConfigError([`SVC_LABELS: '${key}' is given twice`]);
    labels.set(key, value);
  }
  return Object.fromEntries(labels);
}
