/** Names, addresses and directories of the test internet: the role of each address, in one documentation range. */

export interface InternetPlan {
  readonly instance: string;
  readonly namespace: string;
  /** The host's link; its name must not look like a sandbox's link. */
  readonly link: string;
  readonly table: string;
  /** A pattern for the links of the instance's sandboxes. */
  readonly sandboxLinks: string;
  /** The directory of the control socket. */
  readonly directory: string;
  readonly socket: string;
  /** The directory of the authority, which is made before the platform comes up, and stays. */
  readonly authorityDirectory: string;
}

export function internetPlan(instance: string): InternetPlan {
  const suffix = instance === "" ? "" : `-${instance}`;
  const name = instance === "" ? "svc" : instance;
  const directory = `/run/svc${suffix}-internet`;
  return {
    instance,
    namespace: `${name}-inet`,
    link: `inet-${name}`,
    table: `${name}inet`,
    sandboxLinks: `svc${instance}-*`,
    directory,
    socket: `${directory}/control.sock`,
    authorityDirectory: `/var/lib/svc${suffix}/internet`,
  };
}

/** Only one internet can exist at a time, because the routes to it are the machine's. */
export const LOCK = "/run/lock/svc-test-internet.lock";

/**
 * The only documentation range that tests route, assign or dial: some machines have real neighbours in the other two,
 * 192.0.2.0/24 and 203.0.113.0/24, such as package mirrors.
 */
export const RANGE = "198.51.100.0/24";
/**
 * The parts of the range. A policy that allows or denies a whole network does so with the first or the second one; the
 * third one has the link, and addresses without a role.
 */
export const NETWORKS = {
  first: "198.51.100.0/25",
  second: "198.51.100.128/26",
  third: "198.51.100.192/26",
} as const;
/** Both ends of the link between the machine and the internet, in a /30 of the third network. */
export const HOST_END = "198.51.100.254";
export const INTERNET_END = "198.51.100.253";

/** The role of each address; tests of the SDK use well-known ones of the real internet. */
export const ADDRESS = {
  /** The resolver in the platform's settings. */
  dns: "198.51.100.181",
  /** The packets that nodes make to prove that their host lets a sandbox's packets out; they never leave the host. */
  probe: "198.51.100.239",
  /** A resolver that no setting names. */
  otherDns: "198.51.100.53",
  eight: "198.51.100.8",
  eightFour: "198.51.100.4",
  nine: "198.51.100.9",
  one: "198.51.100.129",
  oneTwo: "198.51.100.130",
  google: "198.51.100.20",
  wwwGoogle: "198.51.100.21",
  mapsGoogle: "198.51.100.22",
  echo: "198.51.100.30",
  plain: "198.51.100.31",
  ssh: "198.51.100.40",
  keys: "198.51.100.50",
  shared: "198.51.100.60",
  rebind: "198.51.100.66",
  tunnel: "198.51.100.67",
  api: "198.51.100.70",
  belowApi: "198.51.100.71",
  untrusted: "198.51.100.72",
  socks: "198.51.100.138",
  socksWithPassword: "198.51.100.139",
} as const;

/** Addresses without a role. One test each counts the packets that arrive there. */
export const COUNTED = {
  datagrams: "198.51.100.230",
  spoofedName: "198.51.100.231",
  rawSockets: "198.51.100.232",
  protocols: "198.51.100.233",
  openProtocols: "198.51.100.234",
  fronting: "198.51.100.235",
  hellos: "198.51.100.236",
  races: "198.51.100.237",
  claimedName: "198.51.100.238",
  socksNames: "198.51.100.114",
} as const;

const PAIRS = 34;

/** Returns two more addresses without a role, for one test of `chaos`: one in the third network, and one in the first. */
export function countedPair(number: number): readonly [string, string] {
  if (number < 1 || number > PAIRS) throw new Error(`there is no pair ${number}: the range has place for ${PAIRS}`);
  return [`198.51.100.${192 + number}`, `198.51.100.${79 + number}`];
}

export const SOCKS_PORT = 1080;
export const SOCKS_USER = { username: "someone", password: "s3cret words" } as const;

export const PORT = {
  http: 8080,
  tls: 8443,
  ssh: 22,
  halfClose: 11_371,
  udpEcho: 7,
  udpNames: 5300,
  bulk: 9000,
} as const;

/**
 * One address in each range that no sandbox may reach. These addresses answer the host, so a sandbox's silence has a
 * meaning.
 */
export const FORBIDDEN = [
  "10.255.255.1",
  "100.127.255.1",
  "169.254.200.1",
  "172.31.255.1",
  "192.168.255.1",
  "198.19.255.1",
] as const;

/** A name's records. With an array of arrays each question gets the next array, as from a hostile zone. */
export interface Zone {
  readonly a?: readonly string[] | readonly (readonly string[])[];
  readonly aaaa?: readonly string[];
  readonly cname?: string;
  readonly txt?: string;
  /** An HTTPS record with an encrypted hello and address hints. */
  readonly https?: boolean;
}

/** Names are exact, or `*.` stands for one leading label at any depth. Other names do not exist. */
export const ZONES: Readonly<Record<string, Zone>> = {
  "google.example": { a: [ADDRESS.google], aaaa: ["2001:db8::20"], https: true, txt: "v=test" },
  "www.google.example": { a: [ADDRESS.wwwGoogle] },
  "maps.google.example": { a: [ADDRESS.mapsGoogle] },
  "*.deep.google.example": { a: [ADDRESS.mapsGoogle] },
  "badgoogle.example": { a: [ADDRESS.plain] },
  "cloudflare.example": { a: [ADDRESS.one] },
  "echo.example": { a: [ADDRESS.echo] },
  "plain.example": { a: [ADDRESS.plain] },
  "ssh.example": { a: [ADDRESS.ssh] },
  "keys.example": { a: [ADDRESS.keys] },
  "alias.example": { cname: "google.example" },
  "api.example": { a: [ADDRESS.api] },
  "*.api.example": { a: [ADDRESS.belowApi] },
  // No known authority has signed this host's certificate.
  "untrusted.example": { a: [ADDRESS.untrusted] },
  // The machine itself, by its address on the internet's link.
  "node.test": { a: [HOST_END] },
  // Two names with one address, as behind a delivery network.
  "front.example": { a: [ADDRESS.shared] },
  "hidden.example": { a: [ADDRESS.shared] },
  "rebind.test": { a: [[ADDRESS.rebind], ["169.254.200.1"], ["10.255.255.1"]] },
  "metadata.test": { a: ["169.254.200.1"] },
  "private.test": { a: ["10.255.255.1"] },
  "mixed.test": { a: ["10.255.255.1", ADDRESS.rebind] },
  "inside.test": { cname: "private.test" },
  "*.tunnel.test": { a: [ADDRESS.tunnel], txt: "an answer from the tunnel" },
  "socks.example": { a: [ADDRESS.socks] },
};
