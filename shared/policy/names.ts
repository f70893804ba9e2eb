/** Host names as policies compare them: lower case, by labels, never by the end of a string. Pure. */

import { domainToASCII } from "node:url";

const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * The one spelling of a host name, from SNI, a Host header, a DNS question or a caller: without trailing dot, IDN as
 * punycode. Undefined for addresses in any spelling and for text that is not a DNS name (NUL, too long, empty labels).
 */
export function hostName(text: string): string | undefined {
  // domainToASCII cuts and decodes some input; only text that it leaves unchanged reaches it.
  if (/[^!-~\u0080-\uffff]|[%/\\:@?#[\]]/.test(text)) return undefined;
  const bare = text.endsWith(".") ? text.slice(0, -1) : text;
  const name = /^[!-~]*$/.test(bare) ? bare.toLowerCase() : domainToASCII(bare);
  if (name.length === 0 || name.length > 253) return undefined;
  const labels = name.split(".");
  if (!labels.every((label) => LABEL.test(label))) return undefined;
  // No top level domain is a number: a resolver may read this as an address.
  return /^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? "") ? undefined : name;
}

/**
 * As `hostName`, for a name that a client sends: on the wire names are ASCII. IDNA reads other bytes as letters (U+00AA as `a`)
 * or as nothing (U+00AD), and a server may read them otherwise.
 */
export function nameOnWire(text: string): string | undefined {
  return /^[!-~]*$/.test(text) ? hostName(text) : undefined;
}

/** The name in a Host header; its port is ignored. */
export function hostOfHeader(text: string): string | undefined {
  const match = /^([^:]+)(:\d{1,5})?$/.exec(text.trim());
  return match?.[1] === undefined ? undefined : nameOnWire(match[1]);
}

/** `*` is any name, `*.x` any depth below x but not x, anything else itself. Both in the spelling of `hostName`. */
export function nameMatches(pattern: string, name: string): boolean {
  if (pattern === "*") return true;
  if (!pattern.startsWith("*.")) return pattern === name;
  const wanted = pattern.slice(2).split(".");
  const labels = name.split(".");
  return (
    labels.length > wanted.length && wanted.every((label, i) => labels[labels.length - wanted.length + i] === label)
  );
}

/** Exact wins, then the longest wildcard suffix. */
export function bestMatch<T extends { readonly host: string }>(rules: readonly T[], name: string): T | undefined {
  return rules
    .filter(({ host }) => nameMatches(host, name))
    .toSorted((a, b) => rank(b.host) - rank(a.host))
    .at(0);
}

function rank(pattern: string): number {
  return pattern.startsWith("*") ? pattern.split(".").length : 1000;
}
