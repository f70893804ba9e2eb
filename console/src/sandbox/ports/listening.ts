/** Which ports programs of a sandbox listen at, read from the kernel's tables of TCP sockets. Pure. */

export interface Listening {
  readonly port: number;
  /** Where it listens, in words. */
  readonly at: string;
  /** Number of the user whose program listens. */
  readonly uid: number;
}

/** The platform's own program in each sandbox. */
const ENVD_PORT = 49_983;
/** The state of a socket that listens, as the kernel writes it. */
const LISTENS = "0A";
/** A program can listen at as many ports as it likes, and a row for each would freeze the page. */
const MOST = 200;

/** By port. @param table `/proc/net/tcp`, with `/proc/net/tcp6` behind it */
export function listeningOf(table: string): readonly Listening[] {
  const found = new Map<number, Listening>();
  for (const line of table.split("\n")) {
    const [, local = "", , state, , , , uid] = line.trim().split(/\s+/);
    const [, address = "", hex = ""] = /^([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})$/.exec(local) ?? [];
    const port = Number.parseInt(hex, 16);
    if (state !== LISTENS || address === "" || port === ENVD_PORT) continue;
    const at = placeOf(address);
    const before = found.get(port);
    // A server often has a socket for each family.
    found.set(port, { port, at: before === undefined || before.at === at ? at : EVERYWHERE, uid: Number(uid) });
  }
  return [...found.values()].sort((a, b) => a.port - b.port).slice(0, MOST);
}

const EVERYWHERE = "every address";

/** @param address in hexadecimal digits, each word with its last byte first */
function placeOf(address: string): string {
  if (/^0+$/.test(address)) return EVERYWHERE;
  const isLoopback =
    /^[0-9A-F]{6}7F$/.test(address) ||
    address === "00000000000000000000000001000000" ||
    /^0{16}FFFF0000.{6}7F$/.test(address);
  return isLoopback ? "the sandbox itself" : "one address";
}
