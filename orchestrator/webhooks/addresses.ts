/**
 * Which addresses a webhook may be sent to: those of the public internet, but for this machine's own, and the ranges that the
 * operator allows.
 */

import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { readCidr } from "../../shared/policy/cidr.ts";
import { addressNumber, alwaysDenied } from "../../shared/policy/ranges.ts";
import { ConfigError } from "../../shared/program/config.ts";

export interface TargetAddresses {
  /** True for an IPv4 or IPv6 address that a delivery may be sent to. */
  allows(address: string): boolean;
}

const PUBLIC_IPV6 = blockList(["2000::/3"]);
/** Inside 2000::/3: special purposes, documentation, and 6to4 and Teredo, which carry an IPv4 address. */
const SPECIAL_IPV6 = blockList(["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"]);

/**
 * @param allowed ranges of SVC_WEBHOOK_ALLOW, comma-separated
 * @throws {ConfigError} for an entry that is neither an address nor a range
 */
export function targetAddresses(allowed: string, own: () => readonly string[] = ownAddresses): TargetAddresses {
  const parts = allowed.split(",").map((part) => part.trim());
  const ranges = parts.filter((part) => part !== "");
  const wrong = ranges.filter((part) => readCidr(part) === undefined);
  if (wrong.length > 0) {
    throw new ConfigError(wrong.map((part) => `SVC_WEBHOOK_ALLOW: "${part.slice(0, 64)}" is no address or CIDR range`));
  }
  const permitted = blockList(ranges);
  return {
    allows(text) {
      const address = plain(text);
      if (address === undefined) return false;
      if (has(permitted, address)) return true;
      return isPublic(address) && !own().some((each) => plain(each) === address);
    },
  };
}

/** Read at each check: an interface may get another address. */
function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses = []) => addresses.map(({ address }) => address));
}

function isPublic(address: string): boolean {
  const number = addressNumber(address);
  if (number !== undefined) return alwaysDenied(number) === undefined;
  return has(PUBLIC_IPV6, address) && !has(SPECIAL_IPV6, address);
}

/** The one spelling of an address: an IPv4 address that is mapped into IPv6 is itself. Undefined for anything else. */
function plain(text: string): string | undefined {
  const [address = "", zone] = text.split("%", 2);
  const family = isIP(address);
  // A zone is an interface of this machine: such an address is link-local.
  if (family === 0 || zone !== undefined) return undefined;
  if (family === 4) return address;
  const spelled = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(spelled) ?? [];
  if (high === undefined || low === undefined) return spelled;
  const bytes = Buffer.alloc(4);
  bytes.writeUInt16BE(Number.parseInt(high, 16), 0);
  bytes.writeUInt16BE(Number.parseInt(low, 16), 2);
  return bytes.join(".");
}

function has(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
}

function blockList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const cidr = readCidr(range);
    if (cidr !== undefined) list.addSubnet(cidr.address, cidr.bits, cidr.family === 4 ? "ipv4" : "ipv6");
  }
  return list;
}
