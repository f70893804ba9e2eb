/** Checks of `network.rules` that the schema cannot express. Pure. */

import type { NetworkOptions } from "../../shared/api/network.ts";
import type { EgressPolicy } from "../../shared/policy/egress-policy.ts";
import { placeholdersOf } from "../../shared/policy/placeholders.ts";
import { canBeSet, isHeaderValue } from "../../shared/policy/rule-headers.ts";
import { adviceOnHost } from "./advice.ts";
import { readDomain } from "./destinations.ts";
import { placeholdersOfRules } from "./placeholders.ts";
import { behind, quoted, refuse } from "./refuse.ts";

type Rules = NonNullable<NetworkOptions["rules"]>;
type PolicyRule = EgressPolicy["rules"][number];

/** Headers that no rule can set, besides the forbidden names: they belong to the connection with a proxy. */
const RESERVED: ReadonlySet<string> = new Set(["proxy-authenticate", "proxy-authorization"]);

/** Most different names in the placeholders of one host. */
const MOST_NAMES = 32;

/** Checks the hosts and the headers of rules; not whether the secrets and tokens exist. @throws {AppError} bad_request */
export function checkRules(rules: Rules): void {
  const hosts = new Set<string>();
  for (const [key, list] of Object.entries(rules)) {
    const host = readDomain(key);
    if (host === undefined) {
      const advice = behind("; ", adviceOnHost(key));
      refuse(`invalid rule host ${quoted(key)}: expected a DNS name or *.name${advice}`);
    }
    if (hosts.has(host)) refuse(`rule host ${quoted(key)} is given twice`);
    hosts.add(host);
    for (const { transform } of list) checkHeaders(key, transform?.headers ?? {});
    const names = new Set(placeholdersOfRules({ [key]: list }).map(({ kind, name }) => `${kind} ${name}`));
    if (names.size > MOST_NAMES) {
      refuse(`rules of ${quoted(key)} have placeholders of ${names.size} names: at most ${MOST_NAMES} are allowed`);
    }
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
    // Characters that a header line cannot carry. The message never repeats the value: it may be a secret.
    if (!isHeaderValue(value) || value.includes("\t")) {
      refuse(`rules of ${quoted(host)}: the value of header ${quoted(given)} has characters that are not allowed`);
    }
    if (placeholdersOf(value).some(({ asks }) => asks === undefined)) {
      refuse(`rules of ${quoted(host)}: the value of header ${quoted(given)} has a malformed placeholder`);
    }
  }
}

/** The rules as stored and read back: header names in lower case. */
export function withLowerKeys(rules: Rules): Rules {
  return Object.fromEntries(Object.entries(rules).map(([host, list]) => [host.toLowerCase(), list]));
}

/** A host without headers keeps its entry, because the entry stops a wider rule from applying to the host. */
export function policyRules(rules: Rules): PolicyRule[] {
  const all = Object.entries(rules).map(([key, list]) => {
    const { headers = {}, allowPlainHttp = false } = list[0]?.transform ?? {};
    return { host: readDomain(key) ?? "", headers, ...(allowPlainHttp ? { allowPlainHttp } : {}) };
  });
  return all.some(({ headers }) => Object.keys(headers).length > 0) ? all : [];
}
