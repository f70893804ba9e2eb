/** Checks the addresses in the settings: without a join they stay on this machine, after a join they have TLS. Pure. */

import { isEveryAddress, isLoopback, isPlainToAnother, JOIN } from "../../shared/http/plain-addresses.ts";
import type { AgentConfig } from "../config.ts";
import { urlsIn } from "./orchestrators.ts";

type Addresses = Pick<AgentConfig, "orchestratorUrl" | "agentUrl" | "agentHost" | "proxyUrl" | "proxyHost">;

/** One sentence for each wrong address, which names its setting and the way out. */
export function addressProblems(config: Addresses, { joined }: { readonly joined: boolean }): string[] {
  return joined ? ofMember(config) : ofLoneMachine(config);
}

function ofMember({ orchestratorUrl, agentUrl, agentHost, proxyUrl, proxyHost }: Addresses): string[] {
  const problems = urlsIn(orchestratorUrl)
    .filter((url) => !url.startsWith("https:"))
    .map(
      (url) =>
        `SVC_ORCHESTRATOR_URL ${url} is not the orchestrator's address for nodes: it begins with https:// and has the port of SVC_NODES_PORT`,
    );
  const own = [
    { name: "SVC_AGENT_URL", url: agentUrl, hostName: "SVC_AGENT_HOST", host: agentHost },
    { name: "SVC_PROXY_URL", url: proxyUrl, hostName: "SVC_PROXY_HOST", host: proxyHost },
  ];
  for (const { name, url, hostName, host } of own) {
    if (url?.startsWith("http:") === true) {
      problems.push(`${name} ${url} is plain HTTP, and a node that has joined serves TLS: write https://`);
    } else if (url === undefined && isEveryAddress(host)) {
      problems.push(
        `${hostName} ${host} is every address of this machine: set ${name} to the one that the orchestrator reaches (https://ADDRESS:PORT)`,
      );
    }
  }
  return problems;
}

function ofLoneMachine({ orchestratorUrl, agentUrl, agentHost, proxyUrl, proxyHost }: Addresses): string[] {
  const urls = [
    ...urlsIn(orchestratorUrl).map((url) => ({ name: "SVC_ORCHESTRATOR_URL", url })),
    { name: "SVC_AGENT_URL", url: agentUrl },
    { name: "SVC_PROXY_URL", url: proxyUrl },
  ];
  const hosts = [
    { name: "SVC_AGENT_HOST", host: agentHost },
    { name: "SVC_PROXY_HOST", host: proxyHost },
  ];
  return [
    ...urls.flatMap(({ name, url }) =>
      url !== undefined && isPlainToAnother(url)
        ? [`${name} ${url} would send tokens and sandboxes' data to another machine in clear: ${JOIN}`]
        : [],
    ),
    ...hosts.flatMap(({ name, host }) =>
      isLoopback(host) ? [] : [`${name} ${host} would serve other machines in clear: ${JOIN}`],
    ),
  ];
}
