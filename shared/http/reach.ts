/** Which settings let clients on other machines reach the platform, and which of them are refused. Pure. */

import { isLoopback } from "./plain-addresses.ts";

export interface ReachSettings {
  readonly domain?: string | undefined;
  readonly tlsCertFile?: string | undefined;
  readonly tlsKeyFile?: string | undefined;
  readonly withoutTls: string;
}

/** The settings of the port with TLS; undefined: there is none. */
export function siteOf({ domain, tlsCertFile: certFile, tlsKeyFile: keyFile }: Omit<ReachSettings, "withoutTls">) {
  return domain === undefined || certFile === undefined || keyFile === undefined
    ? undefined
    : { domain, certFile, keyFile };
}

/** @param plain the addresses of ports without TLS, by their settings */
export function reachProblems(settings: ReachSettings, plain: Readonly<Record<string, string>>): readonly string[] {
  const { domain, tlsCertFile, tlsKeyFile, withoutTls } = settings;
  const problems: string[] = [];
  if ((tlsCertFile === undefined) !== (tlsKeyFile === undefined)) {
    problems.push("SVC_TLS_CERT_FILE and SVC_TLS_KEY_FILE are set together: one is the certificate, the other its key");
  } else if (tlsCertFile !== undefined && domain === undefined) {
    problems.push("SVC_TLS_CERT_FILE needs SVC_DOMAIN, the domain that the certificate is for");
  }
  if (withoutTls !== "refuse") return problems;
  for (const [name, host] of Object.entries(plain)) {
    if (isLoopback(host)) continue;
    problems.push(
      `${name} ${host} would send keys and all traffic over the network in clear: leave it at loopback and set SVC_DOMAIN, SVC_TLS_CERT_FILE and SVC_TLS_KEY_FILE, which open a port with TLS beside it; or say SVC_WITHOUT_TLS=a-proxy-of-mine-ends-tls, or SVC_WITHOUT_TLS=keys-cross-the-network-in-clear`,
    );
  }
  return problems;
}

/** The URL of the API as clients on other machines reach it. */
export function siteUrl(domain: string): string {
  return `https://api.${domain}`;
}
