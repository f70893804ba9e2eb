/** Reads the edge program's settings, which `shared/settings/edge.ts` lists, from the environment. */

import { addressList } from "../../../shared/http/connections/client-address.ts";
import { isPlainToAnother } from "../../../shared/http/plain-addresses.ts";
import { reachProblems } from "../../../shared/http/reach.ts";
import { ConfigError, readConfig } from "../../../shared/program/config.ts";
import { AgentConfig } from "../../../shared/settings/agent.ts";
import { EdgeConfig } from "../../../shared/settings/edge.ts";
import { OrchestratorConfig } from "../../../shared/settings/orchestrator.ts";
import { ScriptSettings } from "../../../shared/settings/scripts.ts";

export { EdgeConfig };

/** Settings of other programs may be in the same environment. A name that no program knows is an error. */
export function readEdgeConfig(environment: NodeJS.ProcessEnv): EdgeConfig {
  const config = readConfig(EdgeConfig, environment, { others: [AgentConfig, OrchestratorConfig, ScriptSettings] });
  addressList("SVC_TRUSTED_PROXIES", config.trustedProxies);
  const problems = reachProblems(config, { SVC_EDGE_HOST: config.edgeHost });
  if (problems.length > 0) throw new ConfigError(problems);
  const plain = orchestratorsOf(config).filter(isPlainToAnother);
  if (plain.length > 0)
    throw new ConfigError(
      plain.map(
        (url) =>
          `SVC_ORCHESTRATOR_URL ${url} would send the tokens of sandboxes over the network in clear: make a join token for an edge (./scripts/node add --edge, or POST /admin/join-tokens), join with it (edge --join TOKEN), and name the orchestrator's port for nodes (https://…)`,
      ),
    );
  return config;
}

export function orchestratorsOf({ orchestratorUrl }: Pick<EdgeConfig, "orchestratorUrl">): readonly string[] {
  return orchestratorUrl.split(",").map((url) => url.trim());
}
