/** Which machine a program runs on, as programs tell each other. */

import { readFileSync, readlinkSync } from "node:fs";

/** The same for every program on this kernel, different on every other, and after each start of it. @throws {Error} without /proc */
export function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

/**
 * The same for every program on this kernel and in this network, and for no other: only such programs mean the same server by
 * the same address. Containers that serve as machines share a kernel, and the addresses of their sandboxes may be equal.
 * Undefined: not known.
 */
export function machineId(): string | undefined {
  try {
    return `${bootId()} ${readlinkSync("/proc/self/ns/net")}`;
  } catch {
    return undefined;
  }
}
