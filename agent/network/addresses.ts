/** Maps a slot number to everything that follows from it: address, link, namespace, MAC. Pure. */

import { readCidr } from "../../shared/policy/cidr.ts";
import { addressNumber, addressText, parseRange } from "../../shared/policy/ranges.ts";

/** The gateway has the first address; the last one is the broadcast address of the subnet. */
export const FIRST_SLOT = 2;

export interface Plan {
  /** Name of the table, and prefix of every link and namespace. */
  readonly network: string;
  readonly subnet: string;
  readonly gateway: string;
  /** The bridge that holds the gateway's address. */
  readonly gatewayLink: string;
  readonly lastSlot: number;
  /** The link of the agent's own probe (`reach/`), at the last address. It is no slot: `numberOf` does not know it. */
  readonly probe: Slot;
  slot(number: number): Slot;
  /** The slot of a link or namespace, if it is one of this network. */
  numberOf(link: string): number | undefined;
}

export interface Slot {
  readonly number: number;
  readonly address: string;
  /** Name of the namespace and of the host's end of the link. */
  readonly link: string;
  readonly netnsPath: string;
  /** Fixed, so that neither side has to ask for the other's. */
  readonly hostMac: string;
  readonly sandboxMac: string;
}

/** `network` is at most 8 characters: Linux link names end at 15. `subnet` is IPv4 in CIDR form, /8 to /28. */
export function planNetwork(network: string, subnet: string): Plan {
  const { base, size } = parse(subnet);
  const prefix = `${network}-`;
  const lastSlot = Math.min(size - 2, 99_999);
  const at = (name: string, number: number, address: number): Slot => ({
    number,
    address: addressText(address),
    link: `${prefix}${name}`,
    netnsPath: `/run/netns/${prefix}${name}`,
    hostMac: mac(0x02, address),
    sandboxMac: mac(0x06, address),
  });
  return {
    network,
    subnet,
    gateway: addressText(base + 1),
    gatewayLink: `${network}0`,
    lastSlot,
    probe: at("probe", size - 1, base + size - 1),
    slot(number) {
      if (!Number.isInteger(number) || number < FIRST_SLOT || number > lastSlot) throw new Error(`no slot ${number}`);
      return at(String(number), number, base + number);
    },
    numberOf(link) {
      if (!link.startsWith(prefix)) return undefined;
      const digits = link.slice(prefix.length);
      const number = Number(digits);
      return /^[1-9]\d*$/.test(digits) && number >= FIRST_SLOT && number <= lastSlot ? number : undefined;
    },
  };
}

function parse(subnet: string): { base: number; size: number } {
  const bits = readCidr(subnet)?.bits ?? 32;
  const range = parseRange(subnet);
  const base = range === undefined ? undefined : addressNumber(subnet.split("/")[0] ?? "");
  if (range === undefined || bits < 8 || bits > 28 || base !== range.first)
    throw new Error(`${subnet} is not an IPv4 subnet between /8 and /28 without host bits`);
  return { base, size: 2 ** (32 - bits) };
}

// Locally administered (bit 1 of the first byte), the rest from the address.
function mac(first: number, address: number): string {
  const bytes = [first, 0x5c, ...addressText(address).split(".").map(Number)];
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}
