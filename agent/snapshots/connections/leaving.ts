/** Whether TCP connections leave a sandbox, by the kernel's lists of its network: a look costs no program, and most pauses end none. */

import { readFile } from "node:fs/promises";

const LISTS = ["tcp", "tcp6"];
/** As the lists have them: TIME_WAIT, of which the peer is gone, CLOSE and LISTEN. */
const WITHOUT_PEER: ReadonlySet<string> = new Set(["06", "07", "0A"]);

/** @param pid of a frozen process in the sandbox's network. True also where the lists cannot be read */
export async function leavesSandbox(pid: number): Promise<boolean> {
  try {
    const lists = await Promise.all(LISTS.map((name) => readFile(`/proc/${pid}/net/${name}`, "utf8")));
    return lists.some(hasOutside);
  } catch {
    // A kernel without IPv6 has one list alone: then `ss` looks.
    return true;
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
