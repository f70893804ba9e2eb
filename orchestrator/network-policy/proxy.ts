/** `network.egressProxy`: the SOCKS5 endpoint and its credentials. Pure. */

import type { NetworkOptions } from "../../shared/api/network.ts";
import { readCidr } from "../../shared/policy/cidr.ts";
import type { EgressProxy } from "../../shared/policy/egress-policy.ts";
import { hostName } from "../../shared/policy/names.ts";
import { addressNumber, alwaysDenied, contains, parseRange, type Range } from "../../shared/policy/ranges.ts";
import { ConfigError } from "../../shared/program/config.ts";
import { quoted, refuse } from "./refuse.ts";

type ProxyOption = NonNullable<NetworkOptions["egressProxy"]>;
export type Endpoint = Pick<EgressProxy, "host" | "port">;

/** Most bytes of a user name or password: one byte holds its length (RFC 1929). */
const MAX_BYTES = 255;
const LOOPBACK = 127 * 2 ** 24 + 1;

/**
 * Checks the address and the credentials of an egress proxy. If the address is a name, the node that dials the name
 * checks its addresses.
 * @param prefix text before the field's name in messages
 * @param allowed internal ranges that the operator permits
 * @throws {AppError} bad_request
 */
export function checkProxy(
  { address, username, password }: ProxyOption,
  { prefix, allowed }: { readonly prefix: string; readonly allowed: readonly Range[] },
): void {
  const field = (name: string) => `body field '${prefix}egressProxy.${name}'`;
  const endpoint = readEndpoint(address);
  if (endpoint === undefined) refuse(`${field("address")} must be host:port`);
  if (isInternal(endpoint.host, allowed)) {
    refuse(`${field("address")} must not be an internal address: ${quoted(endpoint.host)}`);
  }
  if (password !== undefined && (username === undefined || username === "")) {
    refuse(`${field("password")} requires a username`);
  }
  checkCredential(username, field("username"));
  checkCredential(password, field("password"));
}

/** Undefined unless the text is a DNS name or an IPv4 address, with a port. */
export function readEndpoint(address: string): Endpoint | undefined {
  const [host = "", port = "", ...rest] = address.trim().split(":");
  if (rest.length > 0 || !/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535) return undefined;
  const known = addressNumber(host) === undefined ? hostName(host) : host;
  return known === undefined ? undefined : { host: known, port: Number(port) };
}

/** The ranges of `SVC_EGRESS_PROXY_ALLOW`; ConfigError for an entry that is not an IPv4 CIDR range. */
export function readAllowed(text: string): readonly Range[] {
  const parts = text.split(",").map((part) => part.trim());
  return parts
    .filter((part) => part !== "")
    .map((part) => {
      const range = readCidr(part) === undefined ? undefined : parseRange(part);
      if (range === undefined)
        throw new ConfigError([`SVC_EGRESS_PROXY_ALLOW: ${quoted(part)} is not an IPv4 CIDR range`]);
      return range;
    });
}

function isInternal(host: string, allowed: readonly Range[]): boolean {
  const local = host === "localhost" || host.endsWith(".localhost");
  const number = local ? LOOPBACK : addressNumber(host);
  if (number === undefined || alwaysDenied(number) === undefined) return false;
  return !allowed.some((range) => contains(range, number));
}

function checkCredential(text: string | undefined, field: string): void {
  if (text === undefined) return;
  if (Buffer.byteLength(text) > MAX_BYTES) refuse(`${field} must not have more than ${MAX_BYTES} bytes`);
  if (text.includes("\u0000")) refuse(`${field} must not contain NUL`);
}
