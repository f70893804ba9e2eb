/** Entries of `allowOut` and `denyOut`: an address, a CIDR range or a domain, in the spelling of a policy. Pure. */

import { readCidr } from "../../shared/policy/cidr.ts";
import { hostName } from "../../shared/policy/names.ts";
import { addressText, parseRange } from "../../shared/policy/ranges.ts";

export type RuleDestination =
  /** `a.b.c.d/bits`, host bits cleared. */
  | { readonly is: "range"; readonly range: string }
  /** Accepted without effect: sandboxes have no IPv6. */
  | { readonly is: "ipv6"; readonly unspecified: boolean }
  /** `*`, `*.x` or a name, as `hostName` spells it. */
  | { readonly is: "domain"; readonly domain: string };

/** Undefined for an entry of neither form. */
export function readDestination(text: string): RuleDestination | undefined {
  const range = readRange(text);
  if (range !== undefined) return range;
  if (text === "*") return { is: "domain", domain: "*" };
  const domain = readDomain(text);
  return domain === undefined ? undefined : { is: "domain", domain };
}

/** A name or `*.name`, lower case, punycode, without trailing dot. */
export function readDomain(text: string): string | undefined {
  const wildcard = text.startsWith("*.");
  const name = hostName(wildcard ? text.slice(2) : text);
  if (name === undefined) return undefined;
  return wildcard ? `*.${name}` : name;
}

export function isUnspecified(destination: RuleDestination): boolean {
  if (destination.is === "ipv6") return destination.unspecified;
  return destination.is === "range" && destination.range === "0.0.0.0/32";
}

function readRange(text: string): RuleDestination | undefined {
  const cidr = readCidr(text);
  if (cidr === undefined) return undefined;
  const { address, bits, family } = cidr;
  if (family === 6) return { is: "ipv6", unspecified: bits === 128 && /^[0:.]+$/.test(address) };
  const range = parseRange(text);
  return range === undefined ? undefined : { is: "range", range: `${addressText(range.first)}/${bits}` };
}
