/** Names, addresses and directories of the test internet: the role of each address, in documentation ranges only. */

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

/** The third documentation range, 192.0.2.0/24, is left out: some machines have it as their own network. */
export const RANGES = ["198.51.100.0/24", "203.0.113.0/24"] as const;
/** Both ends of the link between the machine and the internet, in a /30. */
export const HOST_END = "198.51.100.254";
export const INTERNET_END = "198.51.100.253";

/** The role of each address; tests of the SDK use well-known ones of the real internet. */
export const ADDRESS = {
  /** The resolver in the platform's settings. */
  dns: "203.0.113.53",
  /** A resolver that no setting names. */
  otherDns: "198.51.100.53",
  eight: "198.51.100.8",
  eightFour: "198.51.100.4",
  nine: "198.51.100.9",
  one: "203.0.113.1",
  oneTwo: "203.0.113.2",
  google: "198.51.100.20",
  wwwGoogle: "198.51.100.21",
  mapsGoogle: "198.51.100.22",
  echo: "198.51.100.30",
  plain: "198.51.100.31",
  ssh: "198.51.100.40",
  keys: "198.51.100.50",
  shared: "198.51.100.60",
  socks: "203.0.113.10",
  socksWithPassword: "203.0.113.11",
} as const;

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
  "api.example": { a: ["198.51.100.70"] },
  "*.api.example": { a: ["198.51.100.71"] },
  // No known authority has signed this host's certificate.
  "untrusted.example": { a: ["198.51.100.72"] },
  // The machine itself, by its address on the internet's link.
  "node.test": { a: [HOST_END] },
  // Two names with one address, as behind a delivery network.
  "front.example": { a: [ADDRESS.shared] },
  "hidden.example": { a: [ADDRESS.shared] },
  "rebind.test": { a: [["198.51.100.66"], ["169.254.200.1"], ["10.255.255.1"]] },
  "metadata.test": { a: ["169.254.200.1"] },
  "private.test": { a: ["10.255.255.1"] },
  "mixed.test": { a: ["10.255.255.1", "198.51.100.66"] },
  "inside.test": { cname: "private.test" },
  "*.tunnel.test": { a: ["198.51.100.67"], txt: "an answer from the tunnel" },
  "socks.example": { a: [ADDRESS.socks] },
};
