/** `network.rules`: what their schema cannot say. Pure. */

import type { NetworkOptions } from "../../shared/api/network.ts";
import type { EgressPolicy } from "../../shared/policy/egress-policy.ts";
import { placeholdersOf } from "../../shared/policy/placeholders.ts";
import { canBeSet, isHeaderValue } from "../../shared/policy/rule-headers.ts";
import { readDomain } from "./destinations.ts";
import { quoted, refuse } from "./refuse.ts";

type Rules = NonNullable<NetworkOptions["rules"]>;
type PolicyRule = EgressPolicy["rules"][number];

/** Besides what no rule can set: they are between a client and its proxy. */
const RESERVED: ReadonlySet<string> = new Set(["proxy-authenticate", "proxy-authorization"]);

/** AppError `bad_request`. */
export function checkRules(rules: Rules): void {
  const hosts = new Set<string>();
  for (const [key, list] of Object.entries(rules)) {
    const host = readDomain(key);
    if (host === undefined) refuse(`invalid rule host ${quoted(key)}: expected a DNS name or *.name`);
    if (hosts.has(host)) refuse(`rule host ${quoted(key)} is given twice`);
    hosts.add(host);
    for (const { transform } of list) checkHeaders(key, transform?.headers ?? {});
  }
}

function checkHeaders(host: string, headers: Readonly<Record<string, string>>): void {
  const names = new Set<string>();
  for (const [given, value] of Object.entries(headers)) {
    const name = given.toLowerCase();
    if (!canBeSet(name) || RESERVED.has(name))
      refuse(`rules of ${quoted(host)} must not set the header ${quoted(given)}`);
    if (names.has(name)) refuse(`rules of ${quoted(host)} set the header ${quoted(given)} twice`);
    names.add(name);
    // What a header line cannot carry as it is. The value itself is never repeated: it may be a secret.
    if (!isHeaderValue(value) || value.includes("\t")) {
      refuse(`rules of ${quoted(host)}: the value of header ${quoted(given)} has characters that are not allowed`);
    }
    for (const { text, asks } of placeholdersOf(value)) {
      if (asks === undefined) {
        refuse(`rules of ${quoted(host)}: the value of header ${quoted(given)} has a malformed placeholder`);
      }
      // Refused until something keeps such values: accepted, every request to the host would fail.
      refuse(
        `rules of ${quoted(host)}: the value of header ${quoted(given)} has the placeholder ${text}, but secrets and identity tokens are not available yet`,
      );
    }
  }
}

/** As they are kept and read back: keys in lower case. */
export function withLowerKeys(rules: Rules): Rules {
  return Object.fromEntries(Object.entries(rules).map(([host, list]) => [host.toLowerCase(), list]));
}

/** A host without headers stays among the others: it keeps a wider rule from applying to it. */
export function policyRules(rules: Rules): PolicyRule[] {
  const all = Object.entries(rules).map(([key, list]) => ({
    host: readDomain(key) ?? "",
    headers: list[0]?.transform?.headers ?? {},
  }));
  return all.some(({ headers }) => Object.keys(headers).length > 0) ? all : [];
}
