/** Maps an address to the text by which limits count a client. Pure. */

import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import { readCidr } from "../../policy/cidr.ts";
import { ConfigError } from "../../program/config.ts";

/**
 * An IPv4 address counts unchanged, an IPv6 address by its /64, because a provider's customer has all addresses of a
 * /64. Any other text counts unchanged.
 */
export function clientOf(address: string): string {
  const plain = plainAddress(address);
  if (isIP(plain) !== 6 || isLoopback(plain)) return plain;
  const [head = "", tail] = (plain.split("%", 1)[0] ?? "").split("::");
  const groups = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const all =
    tail === undefined ? groups : [...groups, ...Array<string>(8 - groups.length - after.length).fill("0"), ...after];
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(":")}::/64`;
}

/** An IPv4 address that a socket of both families shows as IPv6, in its usual form. */
export function plainAddress(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice("::ffff:".length) : address;
}

/** The address by which programs of one machine reach each other; not all of 127.0.0.0/8. */
export function isLoopback(address: string): boolean {
  return address === "127.0.0.1" || address === "::1";
}

/**
 * Reads the client of a request, as limits count it: if a trusted proxy sent the request, the last address of
 * `X-Forwarded-For` that is not a trusted proxy, otherwise the address of the connection.
 */
export function addressReader(isProxy: (address: string) => boolean = () => false) {
  return ({ socket, headers }: IncomingMessage): string => {
    const given = [headers["x-forwarded-for"] ?? []].flat().join(",").split(",");
    let address = plainAddress(socket.remoteAddress ?? "");
    while (isProxy(address)) {
      const before = plainAddress(given.pop()?.trim() ?? "");
      if (isIP(before) === 0) break;
      address = before;
    }
    return clientOf(address);
  };
}

/** Parses the setting `variable` (addresses and CIDR ranges, comma-separated) to a check; ConfigError for anything else. */
export function addressList(variable: string, text: string): (address: string) => boolean {
  const list = new BlockList();
  for (const entry of text.split(",").map((part) => part.trim())) {
    if (entry === "") continue;
    const cidr = readCidr(entry);
    if (cidr === undefined) {
      throw new ConfigError([`${variable}: '${entry}' is neither an address nor a range`]);
    }
    list.addSubnet(cidr.address, cidr.bits, cidr.family === 4 ? "ipv4" : "ipv6");
  }
  return (address) => {
    const family = isIP(address);
    return family !== 0 && list.check(address, family === 4 ? "ipv4" : "ipv6");
  };
}
