/** Converts network options as a caller wrote them to the policy that a node enforces. Pure. */

import type { NetworkOptions } from "../../shared/api/network.ts";
import { defined } from "../../shared/defined.ts";
import { AppError } from "../../shared/http/errors.ts";
import { type EgressPolicy, EVERYTHING } from "../../shared/policy/egress-policy.ts";
import { readDestination } from "./destinations.ts";
import { readEndpoint } from "./proxy.ts";
import { policyRules } from "./rules.ts";

export interface DesiredNetwork {
  readonly network: NetworkOptions | undefined;
  /** `allow_internet_access`. False denies every address, in place of `denyOut`; true and undefined change nothing. */
  readonly internet: boolean | undefined;
  /** The proxy's password in clear; the store keeps it sealed, beside the options. */
  readonly proxyPassword: string | undefined;
}

export function toPolicy({ network = {}, internet, proxyPassword }: DesiredNetwork): EgressPolicy {
  const { allowOut = [], denyOut = [], rules = {}, egressProxy } = network;
  const allowed = allowOut.map(readDestination);
  const denied = internet === false ? [EVERYTHING] : rangesOf(denyOut.map(readDestination));
  const proxy = egressProxy ? proxyOf(egressProxy, proxyPassword) : undefined;
  return {
    allowRanges: rangesOf(allowed),
    allowDomains: unique(allowed.flatMap((each) => (each?.is === "domain" ? [each.domain] : []))),
    denyRanges: denied,
    rules: policyRules(rules),
    ...defined({ proxy }),
  };
}

function rangesOf(destinations: readonly ReturnType<typeof readDestination>[]): string[] {
  return unique(destinations.flatMap((each) => (each?.is === "range" ? [each.range] : [])));
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

function proxyOf(
  { address, username }: NonNullable<NetworkOptions["egressProxy"]>,
  password: string | undefined,
): EgressPolicy["proxy"] {
  const endpoint = readEndpoint(address);
  // The proxy was checked when it was accepted; without it the sandbox would connect directly.
  if (endpoint === undefined) throw new AppError("internal", "a stored egress proxy has no address");
  return {
    ...endpoint,
    ...defined({ username, password }),
  };
}
