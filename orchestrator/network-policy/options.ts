/** Checks of network options that the schema cannot express: addresses, names and their combinations. Pure. */

import { isIPv6 } from "node:net";
import type { NetworkOptions } from "../../shared/api/network.ts";
import { defined } from "../../shared/defined.ts";
import { EVERYTHING } from "../../shared/policy/egress-policy.ts";
import { hostName } from "../../shared/policy/names.ts";
import { addressNumber, type Range } from "../../shared/policy/ranges.ts";
import { adviceOnAllowed } from "./advice.ts";
import { isUnspecified, readDestination } from "./destinations.ts";
import { checkProxy } from "./proxy.ts";
import { behind, quoted, refuse } from "./refuse.ts";
import { checkRules, withLowerKeys } from "./rules.ts";

type Egress = Pick<NetworkOptions, "allowOut" | "denyOut" | "egressProxy" | "rules">;

/** What the operator permits beyond the contract. */
export interface NetworkLimits {
  /** Internal ranges that may contain an egress proxy. */
  readonly proxyRanges: readonly Range[];
}

const ENVD_PORT = 49_983;

/** `allow_internet_access` of the same request: false denies everything, as `denyOut: ["0.0.0.0/0"]` does. */
type Internet = boolean | undefined;

/** The options of a create request, as stored. @throws {AppError} bad_request with the wire contract's text */
export function readNetwork(network: NetworkOptions, internet: Internet, limits: NetworkLimits): NetworkOptions {
  const { allowPublicTraffic, httpsPorts, maskRequestHost } = network;
  const egress = readEgress({ ...network, internet }, "network.", limits);
  if (httpsPorts?.includes(ENVD_PORT)) refuse(`body field 'network.httpsPorts' must not contain ${ENVD_PORT}`);
  if (maskRequestHost !== undefined && !isMask(maskRequestHost)) {
    refuse("body field 'network.maskRequestHost' must be host[:port] in ASCII, with an optional ${PORT} placeholder");
  }
  return {
    ...egress,
    ...defined({ allowPublicTraffic, maskRequestHost, httpsPorts }),
  };
}

/** The egress options alone, as stored. `prefix` stands before field names in messages. */
export function readEgress(
  { allowOut, denyOut, egressProxy, rules, internet }: Egress & { readonly internet: Internet },
  prefix: "network." | "",
  { proxyRanges }: NetworkLimits,
): Egress {
  checkDestinations(allowOut ?? [], denyOut ?? [], internet);
  if (rules !== undefined) checkRules(rules);
  if (egressProxy) checkProxy(egressProxy, { prefix, allowed: proxyRanges });
  return {
    ...defined({ allowOut, denyOut, egressProxy }),
    ...(rules === undefined ? {} : { rules: withLowerKeys(rules) }),
  };
}

/** The addresses, ranges and names that the options name: what a limit on egress rules counts. */
export function countDestinations(network: Egress | undefined): number {
  const { allowOut = [], denyOut = [], rules } = network ?? {};
  return allowOut.length + denyOut.length + Object.keys(rules ?? {}).length;
}

function checkDestinations(allowOut: readonly string[], denyOut: readonly string[], internet: Internet): void {
  const denied = denyOut.map((entry) => {
    const destination = readDestination(entry);
    const isRange = destination?.is === "range" || destination?.is === "ipv6";
    if (!isRange || isUnspecified(destination)) refuse(`invalid denied CIDR ${entry.slice(0, 128)}`);
    return destination;
  });
  const allowed = allowOut.map((entry) => {
    const destination = readDestination(entry);
    if (destination !== undefined) return destination;
    const advice = behind("; ", adviceOnAllowed(entry));
    refuse(`invalid allowed destination ${quoted(entry)}: not an address, CIDR range or domain${advice}`);
  });
  const closes = internet === false || denied.some((each) => each.is === "range" && each.range === EVERYTHING);
  if (allowed.some(({ is }) => is === "domain") && !closes) {
    refuse(
      "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all other traffic.",
    );
  }
}

function isMask(text: string): boolean {
  const match = /^(\[[0-9a-fA-F:.]+\]|[\u0021-\u007e]+?)(?::(\d{1,5}))?$/.exec(text.replaceAll("${PORT}", "1"));
  const [, host = "", port = "1"] = match ?? [];
  if (Number(port) < 1 || Number(port) > 65_535) return false;
  if (host.startsWith("[")) return isIPv6(host.slice(1, -1));
  return hostName(host) !== undefined || addressNumber(host) !== undefined;
}
