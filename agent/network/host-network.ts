/** The network of this machine: addresses, links, firewall and counters. */

import type { Log } from "../../shared/program/log.ts";
import type { AgentConfig } from "../config.ts";
import { type RunCommand, runCommand } from "../host/command.ts";
import { readCompanyProxies } from "../host/company-proxies.ts";
import { nativeProgram } from "../host/native-program.ts";
import type { Plan } from "./addresses.ts";
import { type Firewall, hostFirewall } from "./firewall.ts";
import { type Traffic, trafficOf } from "./kernel/traffic.ts";
import { hostLinks, type Links } from "./links.ts";

export interface Network {
  readonly plan: Plan;
  readonly links: Links;
  readonly firewall: Firewall;
  /** Counters of a sandbox's link on the host. */
  readonly traffic: (link: string) => Traffic;
}

interface HostNetworkDeps {
  /** Where redirected connections go. */
  readonly egressPort: () => Promise<number>;
  /** For what a start waits for. */
  readonly run: RunCommand;
  readonly log: Pick<Log, "warn">;
}

export function hostNetwork(config: AgentConfig, plan: Plan, { egressPort, run, log }: HostNetworkDeps): Network {
  const firewall = hostFirewall(plan, runCommand, {
    egressPort,
    connections: config.egressConnections,
    proxy: readCompanyProxies(config) !== undefined,
    watcher: () => nativeProgram(runCommand, "network/svc-table-watch", config.runDir),
    unread: (error) => log.warn({ err: error }, "could not read the firewall's table, and look again in a moment"),
  });
  return { plan, links: hostLinks(plan, run), firewall, traffic: trafficOf };
}
