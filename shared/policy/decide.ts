/**
 * Decides whether a sandbox may open one flow: the only place with the order of the rules. The kernel's sets are made
 * from the same policy; the egress process and the explain route call this. Pure.
 */

import { type EgressPolicy, needsEgressProcess, onlyListedNames } from "./egress-policy.ts";
import { bestMatch, nameMatches } from "./names.ts";
import { addressNumber, alwaysDenied, contains, parseRange } from "./ranges.ts";

/** What a sandbox wants to open: a TCP connection, or a flow of UDP. */
export interface ConnectionRequest {
  /** In the spelling of `hostName`; a name that was read from the flow itself (SNI, Host), or that is asked about. */
  readonly hostname?: string;
  /** Where the sandbox sent the packet. */
  readonly address: string;
  readonly port: number;
  readonly protocol: "tcp" | "udp";
}

export interface Decision {
  readonly verdict: "allow" | "deny";
  /** The entry that decided, as the caller wrote it: `allowOut example.com`, `denyOut 0.0.0.0/0`, `always 10.0.0.0/8`, `default`. */
  readonly rule: string;
  /** One sentence for a human reader. */
  readonly reason: string;
  /** `hostname`: resolve the name, check the result, connect to that; the sandbox's own address is not trusted. */
  readonly dial: "hostname" | "address";
  /** Through the SOCKS5 proxy of the policy, never directly. */
  readonly via?: "egressProxy";
  /** Key of the `rules` entry whose headers are set on requests. */
  readonly transform?: string;
}

/** The only ports on which the policy reads names from the traffic. */
export const NAMED_PORTS: readonly number[] = [80, 443];
/** The node resolves names; the sandbox cannot ask other servers. */
const NAME_PORTS: readonly number[] = [53, 853];

export function decide(flow: ConnectionRequest, policy: EgressPolicy): Decision {
  const decision = permit(flow, policy);
  if (decision.verdict === "deny") return decision;
  const rule = isNamed(flow) ? bestMatch(policy.rules, flow.hostname) : undefined;
  return {
    ...decision,
    // A header for that host must not reach an address that only claims its name.
    ...(rule === undefined ? {} : { dial: "hostname", transform: rule.host }),
    ...(policy.proxy === undefined ? {} : { via: "egressProxy" }),
  };
}

function permit(flow: ConnectionRequest, policy: EgressPolicy): Decision {
  const { address, port, protocol } = flow;
  const number = addressNumber(address);
  if (number === undefined) return deny("always ipv6", "only IPv4 leaves a sandbox");
  const tunnelled = policy.proxy !== undefined && protocol === "tcp";
  const always = alwaysDenied(number);
  if (always !== undefined && !tunnelled)
    return deny(`always ${always}`, "this range is never reachable from a sandbox");
  if (NAME_PORTS.includes(port))
    return deny(`always port ${port}`, "names are resolved by the node's own resolver only");
  if (protocol === "udp" && needsEgressProcess(policy)) {
    return deny("always udp", "with domains, rules or an egress proxy only TCP leaves");
  }
  if (isNamed(flow)) {
    const domain = policy.allowDomains.find((pattern) => nameMatches(pattern, flow.hostname));
    if (domain !== undefined) return allow(`allowOut ${domain}`, "the name is allowed", "hostname");
  }
  const allowed = inside(policy.allowRanges, number);
  if (allowed !== undefined) return allow(`allowOut ${allowed}`, "the address is allowed");
  const denied = inside(policy.denyRanges, number);
  if (denied !== undefined) return deny(`denyOut ${denied}`, reasonOfDenied(flow, policy));
  return allow("default", "nothing denies it");
}

function reasonOfDenied({ hostname }: ConnectionRequest, { allowDomains }: EgressPolicy): string {
  // On a port on which names are read, the name would have allowed the flow.
  const isAllowed = hostname !== undefined && allowDomains.some((pattern) => nameMatches(pattern, hostname));
  return isAllowed
    ? "an allowed name counts for TCP to ports 80 and 443 only: elsewhere the address decides, and it is denied"
    : "the address is denied, and nothing allows it";
}

/** Whether the name allows the flow, wherever it resolves to, rather than the address. */
export function allowedByName(flow: ConnectionRequest, policy: EgressPolicy): boolean {
  return isNamed(flow) && policy.allowDomains.some((pattern) => nameMatches(pattern, flow.hostname));
}

/** Whether the node's resolver answers questions for this name; `hostName` spelling. */
export function decideName(name: string, policy: EgressPolicy): Decision {
  if (!onlyListedNames(policy)) return allow("default", "not everything is denied");
  const domain = policy.allowDomains.find((pattern) => nameMatches(pattern, name));
  if (domain !== undefined) return allow(`allowOut ${domain}`, "the name is allowed");
  return deny("denyOut 0.0.0.0/0", "everything is denied, and no allowed domain matches the name");
}

function isNamed(flow: ConnectionRequest): flow is ConnectionRequest & { readonly hostname: string } {
  return flow.hostname !== undefined && flow.protocol === "tcp" && NAMED_PORTS.includes(flow.port);
}

function inside(ranges: readonly string[], number: number): string | undefined {
  return ranges.find((text) => {
    const range = parseRange(text);
    return range !== undefined && contains(range, number);
  });
}

function allow(rule: string, reason: string, dial: Decision["dial"] = "address"): Decision {
  return { verdict: "allow", rule, reason, dial };
}

function deny(rule: string, reason: string): Decision {
  return { verdict: "deny", rule, reason, dial: "address" };
}
