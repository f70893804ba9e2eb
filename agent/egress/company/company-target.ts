/**
 * Decides about a request that a sandbox makes of the node's proxy, and leads what is allowed through the company's proxy.
 * The company's proxy resolves the name again, so every address that the node knows for it must be allowed.
 */

import type { ConnectionRequest } from "../../../shared/policy/decide.ts";
import type { EgressPolicy } from "../../../shared/policy/egress-policy.ts";
import { addressNumber } from "../../../shared/policy/ranges.ts";
import type { CompanyProxies, CompanyProxy } from "../channel/messages.ts";
import {
  decideHere,
  type FoundTarget,
  findTarget,
  mayBeAnywhere,
  noAddress,
  type TargetDeps,
} from "../destinations/target.ts";
import type { ProxyRequest } from "./proxy-request.ts";

/** Stands for the address of a name that only the company's proxy resolves; a range for documentation. */
const ANY_ADDRESS = "192.0.2.1";
/** Ends of names that are never of the internet (RFC 6761, 6762, 8375; ICANN's `internal`; what companies use). */
const INSIDE = [
  "localhost",
  "local",
  "internal",
  "intranet",
  "private",
  "corp",
  "home",
  "lan",
  "arpa",
  "test",
  "invalid",
];

export interface CompanyFound extends FoundTarget {
  readonly request: ConnectionRequest;
}

/** Throws when a name that must be resolved has no address. */
export async function findCompanyTarget(
  asked: ProxyRequest,
  policy: EgressPolicy,
  proxies: CompanyProxies,
  deps: TargetDeps,
): Promise<CompanyFound> {
  const { host, port } = asked;
  const proxy = asked.kind === "tunnel" ? proxies.https : proxies.http;
  const flow = { port, protocol: "tcp" } as const;
  if (addressNumber(host) !== undefined) {
    const request = { ...flow, address: host };
    const found = await findTarget(request, policy, deps);
    return { request, ...through(proxy, host, found, [host]) };
  }
  const named = (address: string) => ({ ...flow, hostname: host, address });
  const { addresses, ...answer } = await deps.names.addresses(host);
  const [first] = addresses;
  // The sandbox's own egress proxy comes first, and no company's proxy if there is none for this kind.
  if (policy.proxy !== undefined || proxy === undefined) {
    const request = named(first ?? ANY_ADDRESS);
    if (first === undefined && policy.proxy === undefined) throw noAddress(answer);
    return { request, ...(await findTarget(request, policy, deps)) };
  }
  if (first === undefined) {
    const request = named(ANY_ADDRESS);
    const decision = decideHere(request, policy, deps);
    if (decision.verdict === "allow" && !(mayBeAnywhere(request, policy) && ofTheInternet(host)))
      throw noAddress(answer);
    return { request, ...through(proxy, host, { decision, target: { is: "refused" } }, []) };
  }
  const decisions = addresses.map((address) => decideHere(named(address), policy, deps));
  const denied = decisions.findIndex(({ verdict }) => verdict === "deny");
  const request = named(addresses[Math.max(denied, 0)] ?? first);
  const decision = decideHere(request, policy, deps);
  return { request, ...through(proxy, host, { decision, target: { is: "refused" } }, addresses) };
}

function through(
  proxy: CompanyProxy | undefined,
  host: string,
  { decision, target }: FoundTarget,
  addresses: readonly string[],
): FoundTarget {
  if (decision.verdict === "deny") return { decision, target: { is: "refused" } };
  if (proxy === undefined || target.is === "proxied") return { decision, target };
  return { decision, target: { is: "company", proxy, host, addresses } };
}

/** Whether a name that the node does not resolve may be one of the internet, and not of the company's own network. */
export function ofTheInternet(name: string): boolean {
  const labels = name.split(".");
  return labels.length > 1 && !INSIDE.includes(labels.at(-1) ?? "");
}
