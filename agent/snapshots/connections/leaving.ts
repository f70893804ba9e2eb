/** Whether TCP connections leave a sandbox, by the kernel's lists of its network: a look costs no program, and most pauses end none. */

import { open } from "node:fs/promises";

const LISTS = ["tcp", "tcp6"];
/** As the lists have them: TIME_WAIT, of which the peer is gone, CLOSE and LISTEN. */
const WITHOUT_PEER: ReadonlySet<string> = new Set(["06", "07", "0A"]);
/** Of a list, with 150 bytes for each socket: a sandbox may have a hundred thousand, and the agent would stand still for them. */
const MOST_BYTES = 256 * 1024;

/** @param pid of a frozen process in the sandbox's network. True also where the lists cannot be read, or are long */
export async function leavesSandbox(pid: number): Promise<boolean> {
  try {
    const lists = await Promise.all(LISTS.map((name) => beginning(`/proc/${pid}/net/${name}`)));
    return lists.some((list) => list.length >= MOST_BYTES || hasOutside(list));
  } catch {
    // A kernel without IPv6 has one list alone: then `ss` looks.
    return true;
  }
}

/** The file, or its first MOST_BYTES, which are a character each. */
async function beginning(path: string): Promise<string> {
  const file = await open(path);
  try {
    const bytes = Buffer.allocUnsafe(MOST_BYTES);
    let length = 0;
    while (length < MOST_BYTES) {
      // The kernel gives a page at a time, and nothing at the end.
      const { bytesRead } = await file.read(bytes, length, MOST_BYTES - length, null);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.toString("latin1", 0, length);
  } finally {
    await file.close();
  }
}

/** Whether a list of the kernel has a connection to another address than loopback's. Pure. */
export function hasOutside(list: string): boolean {
  return list.split("\n").some((line) => {
    const [, , remote = "", state = ""] = line.trim().split(/\s+/);
    const [address = ""] = remote.split(":");
    return /^[\dA-F]+$/.test(address) && !WITHOUT_PEER.has(state) && !isLoopback(address);
  });
}

/** Of an address in words of 32 bits, each with its last byte first: 127.0.0.0/8, also as an address of IPv6, and ::1. */
function isLoopback(address: string): boolean {
  if (address === "00000000000000000000000001000000") return true;
  const of4 = address.length === 8 ? address : /^0{16}FFFF0000([\dA-F]{8})$/.exec(address)?.[1];
  return of4?.endsWith("7F") === true;
}
