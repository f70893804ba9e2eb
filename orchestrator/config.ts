/** Reads the orchestrator's settings, which `shared/settings/orchestrator.ts` lists, from the environment. */

import { isLoopback } from "../shared/http/plain-addresses.ts";
import { reachProblems, siteOf, siteUrl } from "../shared/http/reach.ts";
import { ConfigError, readConfig } from "../shared/program/config.ts";
import { AgentConfig } from "../shared/settings/agent.ts";
import { EdgeConfig } from "../shared/settings/edge.ts";
import { OrchestratorConfig } from "../shared/settings/orchestrator.ts";
import { ScriptSettings } from "../shared/settings/scripts.ts";

export { OrchestratorConfig };

/** Settings of other programs may be in the same environment. A name that no program knows is an error. */
export function readOrchestratorConfig(environment: NodeJS.ProcessEnv): OrchestratorConfig {
  const config = readConfig(OrchestratorConfig, environment, { others: [AgentConfig, EdgeConfig, ScriptSettings] });
  checkSilence(config);
  const { apiHost, edgeHost, edge } = config;
  const plain = { SVC_API_HOST: apiHost, ...(edge === "off" ? {} : { SVC_EDGE_HOST: edgeHost }) };
  const problems = reachProblems(config, plain);
  if (problems.length > 0) throw new ConfigError(problems);
  checkProvider(config);
  const site = siteOf(config);
  return site === undefined || config.publicUrl !== undefined ? config : { ...config, publicUrl: siteUrl(site.domain) };
}

/** @throws {ConfigError} when sandboxes of a node would be lost while the node still gets requests and new sandboxes */
function checkSilence({ nodeTimeoutMs, nodeLostMs }: OrchestratorConfig): void {
  if (nodeLostMs >= nodeTimeoutMs) return;
  throw new ConfigError([
    `SVC_NODE_LOST_MS ${nodeLostMs} is less than SVC_NODE_TIMEOUT_MS ${nodeTimeoutMs}: the sandboxes of a silent node would be lost while the node still counts as ready; make it at least as large, and better several times as large`,
  ]);
}

/** @throws {ConfigError} when people would be sent to a provider that does not know the console, or could not log in */
function checkProvider({ oidcIssuer, oidcClientId, oidcRoles }: OrchestratorConfig): void {
  if (oidcIssuer === undefined) return;
  const { protocol, hostname } = new URL(oidcIssuer);
  if (protocol !== "https:" && !isLoopback(hostname))
    throw new ConfigError(["SVC_OIDC_ISSUER must be an address of https: anybody between could log in as anybody"]);
  if (oidcClientId === undefined)
    throw new ConfigError(["SVC_OIDC_ISSUER needs SVC_OIDC_CLIENT_ID: the client that the provider knows"]);
  if (oidcRoles.trim() === "")
    throw new ConfigError(["SVC_OIDC_ISSUER needs SVC_OIDC_ROLES: without a rule nobody can log in"]);
}
