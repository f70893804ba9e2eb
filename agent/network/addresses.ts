/** Maps a slot number to everything that follows from it: address, link, namespace, MAC. Pure. */

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
  return {
    network,
    subnet,
    gateway: dotted(base + 1),
    gatewayLink: `${network}0`,
    lastSlot,
    slot(number) {
      if (!Number.isInteger(number) || number < FIRST_SLOT || number > lastSlot) throw new Error(`no slot ${number}`);
      const link = `${prefix}${number}`;
      const address = base + number;
      return {
        number,
        address: dotted(address),
        link,
        netnsPath: `/run/netns/${link}`,
        hostMac: mac(0x02, address),
        sandboxMac: mac(0x06, address),
      };
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
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(subnet);
  const [a = 256, b = 256, c = 256, d = 256, bits = 0] = match?.slice(1).map(Number) ?? [];
  const base = ((a * 256 + b) * 256 + c) * 256 + d;
  const size = 2 ** (32 - bits);
  if (Math.max(a, b, c, d) > 255 || bits < 8 || bits > 28 || base % size !== 0) {
    throw new Error(`${subnet} is not an IPv4 subnet between /8 and /28 without host bits`);
  }
  return { base, size };
}

function dotted(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join(".");
}

// Locally administered (bit 1 of the first byte), the rest from the address.
function mac(first: number, address: number): string {
  const bytes = [first, 0x5c, ...dotted(address).split(".").map(Number)];
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}
