/** Checks of the firewall, DNS, ports and certificates. Pure. */

import type { Check } from "./check.ts";
import { findingsOf } from "./findings.ts";

const DAY_MS = 86_400_000;
/** Certificates of nodes live some days and are renewed in time; one of people lives months. */
const SOON = 0.1;
const MOST_SOON_MS = 14 * DAY_MS;
/** Chains of the platform's table without which a sandbox could reach what it must not. */
const CHAINS = ["forward", "out", "pass", "refuse", "input", "local"];
/** What a program says against its certificate; that it ends is said by other checks. */
const REFUSED =
  /certificate is not for every name|key is not that of the certificate|(?:certificate|key or the chain) cannot be read/;
/** Of an authority of one's own that signs by itself there is no chain, and clients that know it miss nothing. */
const CHAINLESS = /certificate without its chain/;

export const networkChecks: readonly Check[] = [
  {
    id: "firewall.forwarding",
    section: "firewall",
    severity: "fails",
    problem: "this machine forwards no packets, so no sandbox has a network",
    evidence: ({ kernel, instance }) => {
      if (!instance.programs.includes("agent")) return [];
      if (kernel?.forwarding === undefined) return undefined;
      return kernel.forwarding ? [] : [{ evidence: "net.ipv4.ip_forward is 0", mends: { does: "forwarding" } }];
    },
    fix: "sysctl -w net.ipv4.ip_forward=1, and look what sets it to 0 below /etc/sysctl.d",
  },
  {
    id: "firewall.table",
    section: "firewall",
    severity: "fails",
    problem: "the platform's firewall rules are not in the kernel",
    evidence: ({ firewall, instance, programs }) => {
      if (!instance.programs.includes("agent")) return [];
      if (firewall === undefined) return undefined;
      // The agent makes them at its first start: a machine that was just set up, or brought down, has none.
      if (firewall.chains === undefined) {
        return runs(programs) || firewall.bridge ? [`there is no table inet ${instance.network}`] : undefined;
      }
      const { chains } = firewall;
      const missing = CHAINS.filter((chain) => !chains.includes(chain));
      return missing.length === 0 ? [] : [`the table inet ${instance.network} lacks ${missing.join(", ")}`];
    },
    fix: "restart the agent (./scripts/service restart agent), which makes the whole table again; find who flushes it",
  },
  {
    id: "firewall.bridge",
    section: "firewall",
    severity: "fails",
    problem: "the link that holds the gateway of the sandboxes is gone",
    evidence: ({ firewall, instance, programs }) => {
      if (!instance.programs.includes("agent")) return [];
      if (firewall === undefined) return undefined;
      if (firewall.bridge) return [];
      return runs(programs) || firewall.chains !== undefined ? [`there is no link ${instance.network}0`] : undefined;
    },
    fix: "restart the agent (./scripts/service restart agent), which makes it again; find who deletes it",
  },
  {
    id: "firewall.collision",
    section: "firewall",
    severity: "fails",
    problem: "something on the machine stands between sandboxes and their network",
    evidence: ({ nodes, firewall, ...rest }) => {
      const found = findingsOf(["network."])({ nodes, firewall, ...rest });
      const others = firewall?.others ?? [];
      if (found === undefined || others.length === 0) return found;
      return found.map((one) =>
        typeof one === "string" ? one : { ...one, evidence: `${one.evidence} (active here: ${others.join(", ")})` },
      );
    },
    fix: "docs/operating/network.md names the rules of ufw, firewalld and Docker that do this",
  },
  {
    id: "dns.silent",
    section: "DNS",
    severity: "fails",
    problem: "no name server answers this machine, so sandboxes resolve no names",
    evidence: ({ dns, instance }) => {
      if (!instance.programs.includes("agent")) return [];
      if (dns === undefined) return undefined;
      if (dns.length === 0) return ["/etc/resolv.conf names none, and SVC_DNS_UPSTREAM is not set"];
      return dns.some(({ answers }) => answers)
        ? []
        : [`no answer from ${dns.map(({ address }) => address).join(", ")}`];
    },
    fix: "mend /etc/resolv.conf, or name resolvers for sandboxes with SVC_DNS_UPSTREAM",
  },
  {
    id: "dns.partly",
    section: "DNS",
    severity: "warns",
    problem: "a name server of this machine does not answer",
    evidence: ({ dns }) =>
      dns === undefined || !dns.some(({ answers }) => answers)
        ? dns && []
        : dns.filter(({ answers }) => !answers).map(({ address }) => address),
    fix: "remove it from /etc/resolv.conf or SVC_DNS_UPSTREAM: each look-up may wait for it",
  },
  {
    id: "ports.taken",
    section: "ports",
    severity: "fails",
    problem: "another program listens on a port of the platform",
    evidence: ({ ports, programs }) =>
      ports === undefined || programs === undefined
        ? undefined
        : ports.flatMap(({ program, setting, port, by }) => {
            const own = programs.find((one) => one.program === program)?.pid;
            return by === undefined || by.pid === own ? [] : [`${port} (${setting}): ${by.name}, process ${by.pid}`];
          }),
    fix: "stop that program, or give the platform another port in .svc/config.env",
  },
  {
    id: "certificates.unreadable",
    section: "certificates",
    severity: "fails",
    problem: "a certificate of the platform cannot be read",
    evidence: ({ certificates }) =>
      certificates?.flatMap(({ path, problem }) => (problem === undefined ? [] : [`${path}: ${problem}`])),
    fix: "put the file back; a node gets a certificate by joining again: docs/operating/machines.md",
  },
  {
    id: "certificates.expired",
    section: "certificates",
    severity: "fails",
    problem: "a certificate of the platform is not valid now",
    evidence: ({ certificates, at }) =>
      certificates
        ?.filter(({ problem, from, until }) => problem === undefined && (at > until || at < from))
        .map(({ path, from, until }) =>
          at > until ? `${path} ended at ${iso(until)}` : `${path} begins at ${iso(from)}: is the clock right?`,
        ),
    fix: "renew it; a node renews its own while its agent runs and reaches the orchestrator, and joins again otherwise",
  },
  {
    id: "certificates.ending",
    section: "certificates",
    severity: "warns",
    problem: "a certificate of the platform ends soon, and should have been renewed",
    evidence: ({ certificates, at }) =>
      certificates
        ?.filter(({ problem, from, until }) => {
          const soon = Math.min((until - from) * SOON, MOST_SOON_MS);
          return problem === undefined && at >= from && at <= until && until - at < soon;
        })
        .map(({ path, until }) => `${path} ends at ${iso(until)}`),
    fix: "renew it; the log of the agent says why a node's own is not renewed",
  },
  {
    id: "certificates.site",
    section: "certificates",
    severity: "fails",
    problem: "clients on other machines refuse the certificate of the platform's domain",
    evidence: ({ programs }) =>
      programs?.flatMap(({ program, certificate = "" }) =>
        REFUSED.test(certificate) ? [`${program}: ${certificate}`] : [],
      ),
    fix: "put both files in place, which are read again by themselves: docs/operating/network.md#from-another-machine",
  },
  {
    id: "certificates.chain",
    section: "certificates",
    severity: "warns",
    problem:
      "only clients that know who signed the certificate of the platform's domain trust it: its file has no chain",
    evidence: ({ programs }) =>
      programs?.flatMap(({ program, certificate = "" }) =>
        CHAINLESS.test(certificate) ? [`${program}: ${certificate}`] : [],
      ),
    fix: "SVC_TLS_CERT_FILE is the file with the whole chain (fullchain.pem of certbot); where your own authority has signed it and clients trust that, nothing is wrong",
  },
  {
    id: "certificates.reach",
    section: "certificates",
    severity: "warns",
    problem: "this machine does not reach the platform by its domain, as clients would",
    evidence: ({ site, programs }) => {
      if (programs?.some(({ program, pid }) => program !== "agent" && pid === undefined) === true) return undefined;
      return site?.unreached;
    },
    fix: "api.DOMAIN and *.DOMAIN lead to this machine, or to its edges or proxies; where clients know the names and this machine need not, nothing is wrong",
  },
];

function runs(programs: Parameters<Check["evidence"]>[0]["programs"]): boolean {
  return programs?.some(({ program, pid }) => program === "agent" && pid !== undefined) ?? false;
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
