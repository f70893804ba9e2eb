/**
 * Modules of Node that few sandboxes need, loaded on first use: at start they would take a tenth of the time to
 * listening, and their memory for good.
 */

import { closeSync, openSync, readSync } from "node:fs";

export function lateCrypto(): typeof import("node:crypto") {
  return process.getBuiltinModule("node:crypto");
}

export function lateChildProcess(): typeof import("node:child_process") {
  return process.getBuiltinModule("node:child_process");
}

export function lateZlib(): typeof import("node:zlib") {
  return process.getBuiltinModule("node:zlib");
}

/**
 * A unique name, in lower-case hexadecimal. The kernel makes it: OpenSSL's generator is memory of this process, and
 * every sandbox that is started from one memory image would continue with the same numbers.
 */
export function randomName(bytes: number): string {
  const random = Buffer.alloc(bytes);
  const kernel = openSync("/dev/urandom", "r");
  try {
    for (let filled = 0; filled < bytes; ) filled += readSync(kernel, random, filled, bytes - filled, null);
  } finally {
    closeSync(kernel);
  }
  return random.toString("hex");
}
