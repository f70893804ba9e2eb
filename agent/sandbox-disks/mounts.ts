/** What is mounted, and whether it takes writes. */

import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";

/** Whether a directory exists and is on another file system than `than`. */
export function isOther(directory: string, than: string): boolean {
  const device = statSync(than).dev;
  try {
    const found = statSync(directory, { throwIfNoEntry: false });
    return found !== undefined && found.dev !== device;
  } catch {
    // A damaged file system is mounted, and may answer nothing.
    return true;
  }
}

/** Whether a mounted file system takes no writes any more, as after a write that the host's full disk refused. */
export async function isFailed(place: string): Promise<boolean> {
  const mounts = (await readFile("/proc/mounts", "utf8")).split("\n").map((line) => line.split(" "));
  return mounts.some(([, at, , options = ""]) => at === place && /(^|,)(ro|emergency_ro|shutdown)(,|$)/.test(options));
}
