/** The egress process of this machine, and what sandboxes have to trust and to use for their traffic. */

import { join } from "node:path";
import type { EgressPolicy } from "../../shared/policy/egress-policy.ts";
import type { Log } from "../../shared/program/log.ts";
import type { AgentConfig } from "../config.ts";
import type { CertificateWithKey } from "../egress/channel/messages.ts";
import { caFor, loadAuthority } from "../egress/rewrite/authority.ts";
import { runCommand } from "../host/command.ts";
import { readCompanyCertificates } from "../host/company-certificates.ts";
import { proxyVariables, readCompanyProxies } from "../host/company-proxies.ts";
import { type EgressProcess, type EgressTask, startEgressProcess } from "./process.ts";
import { choosePort, egressCommand, extraCertificates } from "./program.ts";

const DNS_PORT = 53;

/** Variables of the agent's environment that the egress process gets; none holds a secret. */
const EGRESS_ENVIRONMENT = ["PATH", "NODE_OPTIONS", "SSL_CERT_FILE", "SSL_CERT_DIR"];

export interface Egress {
  readonly start: (task: EgressTask) => EgressProcess;
  /** PEM of the company's authorities (`SVC_SANDBOX_CA_FILE`), and of the node's for a policy with rules. Empty: neither. */
  readonly caFor: (policy: EgressPolicy) => Promise<string>;
  /** Variables that lead programs in sandboxes to the company's proxy; none without one. */
  readonly networkVariables: () => Promise<Readonly<Record<string, string>>>;
}

export interface HostEgress extends Egress {
  /** Where it listens for redirected connections; chosen at the first call. */
  readonly port: () => Promise<number>;
}

export interface EgressSurroundings {
  /** Address at which sandboxes reach it. */
  readonly gateway: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly log: Log;
}

export function hostEgress(config: AgentConfig, { gateway, environment, log }: EgressSurroundings): HostEgress {
  const chosen = { port: undefined as Promise<number> | undefined };
  const loaded = { authority: undefined as Promise<CertificateWithKey> | undefined };
  // Always the same object, because leases are kept by its identity.
  const authority = () => (loaded.authority ??= loadAuthority(config.stateDir, Date.now()));
  const company = config.sandboxCaFile === undefined ? "" : readCompanyCertificates(config.sandboxCaFile);
  const companyProxies = readCompanyProxies(config);
  const port = () => (chosen.port ??= choosePort(config.egressPort, join(config.stateDir, "egress-port")));
  return {
    port,
    start: (task) =>
      startEgressProcess(
        {
          command: async () =>
            egressCommand(runCommand, config.runDir, {
              gateway,
              port: await port(),
              dnsPort: DNS_PORT,
              ...(config.egressUid === undefined ? {} : { user: config.egressUid }),
            }),
          environment: {
            ...Object.fromEntries(
              EGRESS_ENVIRONMENT.map((name) => [name, environment[name] ?? ""]).filter(([, value]) => value !== ""),
            ),
            SVC_LOG_LEVEL: config.logLevel,
          },
          begin: {
            gateway,
            dnsUpstream: config.dnsUpstream,
            connectionsPerSandbox: config.egressConnections,
            proxyAllowedRanges: config.egressProxyAllow
              .split(",")
              .map((text) => text.trim())
              .filter(Boolean),
            ...(companyProxies === undefined ? {} : { companyProxies }),
          },
          authority,
          extraCertificates: async () => (await extraCertificates(environment["NODE_EXTRA_CA_CERTS"], log)) + company,
          log,
        },
        task,
      ),
    caFor: async (policy) => company + (policy.rules.length === 0 ? "" : caFor(policy, await authority())),
    networkVariables: async () => proxyVariables(companyProxies, config, `${gateway}:${await port()}`),
  };
}
