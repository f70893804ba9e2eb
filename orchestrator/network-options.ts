/** What the schema of network options cannot say: addresses, names and their combinations (wire-contract.md §1.2.1). Pure. */

import { isIP } from "node:net";
import IPCIDR from "ip-cidr";
import type { NetworkOptions } from "../shared/api/network.ts";
import { AppError } from "../shared/errors.ts";

export const ALL_TRAFFIC = "0.0.0.0/0";
const ENVD_PORT = 49_983;

/** AppError `bad_request` in the words of the contract. */
export function checkNetwork(network: NetworkOptions): void {
  checkDestinations(network.allowOut ?? [], network.denyOut ?? []);
  for (const host of Object.keys(network.rules ?? {})) {
    if (!isDomain(host.toLowerCase())) refuse(`invalid rule host ${shown(host)}: expected a DNS name or *.name`);
  }
  const { egressProxy, httpsPorts, maskRequestHost } = network;
  if (egressProxy && !isHostPort(egressProxy.address)) {
    refuse("body field 'network.egressProxy.address' must be host:port");
  }
  if (httpsPorts?.includes(ENVD_PORT)) refuse(`body field 'network.httpsPorts' must not contain ${ENVD_PORT}`);
  if (maskRequestHost !== undefined && !isMask(maskRequestHost)) {
    refuse("body field 'network.maskRequestHost' must be host[:port] in ASCII, with an optional ${PORT} placeholder");
  }
}

function checkDestinations(allowOut: readonly string[], denyOut: readonly string[]): void {
  for (const entry of denyOut) {
    if (!isRange(entry) || isUnspecified(entry)) refuse(`invalid denied CIDR ${shown(entry)}`);
  }
  const domains = allowOut.filter((entry) => !isRange(entry));
  for (const domain of domains) {
    if (!isDomain(domain)) refuse(`invalid allowed destination ${shown(domain)}: not an address, CIDR range or domain`);
  }
  if (domains.length > 0 && !denyOut.includes(ALL_TRAFFIC)) {
    refuse(
      "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all other traffic.",
    );
  }
}

function isRange(text: string): boolean {
  // A zone means something on one machine only.
  return !text.includes("%") && (isIP(text) !== 0 || IPCIDR.isValidCIDR(text));
}

// `0.0.0.0/0` is a range, `0.0.0.0` is no destination.
function isUnspecified(text: string): boolean {
  return ["0.0.0.0", "0.0.0.0/32", "::", "::/128"].includes(text);
}

/** A DNS name, with at most one leading wildcard label. */
export function isDomain(text: string): boolean {
  const name = text.startsWith("*.") ? text.slice(2) : text;
  if (name.length === 0 || name.length > 253) return false;
  const labels = name.split(".");
  return labels.every((label) => /^[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?$/.test(label));
}

function isHostPort(text: string): boolean {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text);
  if (match === null) return false;
  const [, v6, host, port] = match;
  if (Number(port) < 1 || Number(port) > 65_535) return false;
  return v6 === undefined ? isIP(host ?? "") === 4 || isDomain(host ?? "") : isIP(v6) === 6;
}

function isMask(text: string): boolean {
  const host = text.replaceAll("${PORT}", "1");
  return /^[A-Za-z0-9._-]+(:\d{1,5})?$/.test(host) || /^\[[0-9a-fA-F:.]+\](:\d{1,5})?$/.test(host);
}

function refuse(message: string): never {
  throw new AppError("bad_request", message);
}

function shown(text: string): string {
  return `'${text.slice(0, 128)}'`;
}
