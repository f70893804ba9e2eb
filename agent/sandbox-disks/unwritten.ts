/** What the kernel still writes to one disk: the limit of what waits in memory. */

import { writeFile } from "node:fs/promises";

/** Large enough that writing stays as fast as the host. */
const UNWRITTEN_BYTES = 32 * 1024 * 1024;

/**
 * Limits what waits in memory to be written to a disk. When the host's disk is short its sandbox is frozen, and what waits
 * is still written. Where the kernel has no such limit, the reserve alone must be large enough.
 */
export async function limitUnwritten(device: number): Promise<void> {
  const bdi = `${blockDevice(device)}/bdi`;
  try {
    await writeFile(`${bdi}/max_bytes`, String(UNWRITTEN_BYTES));
    await writeFile(`${bdi}/strict_limit`, "1");
  } catch {
    // An older kernel.
  }
}

/** The kernel's directory of a block device. */
export function blockDevice(device: number): string {
  return `/sys/dev/block/${major(device)}:${minor(device)}`;
}

// As glibc encodes the number of a device.
const major = (device: number) => Math.floor(device / 256) % 4096;
const minor = (device: number) => (device % 256) + Math.floor(device / 2 ** 20) * 256;
