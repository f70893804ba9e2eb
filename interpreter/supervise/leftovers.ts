/** Ends kernels of a server that was killed: no one reads what they say any more, and they hold memory. */

import { readdirSync, readFileSync } from "node:fs";

/** Kills every process that was started with a file in this directory, which only kernels are. Returns their number. */
export function endLeftovers(runtime: string): number {
  let ended = 0;
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      if (!words.some((word) => word.startsWith(`${runtime}/`))) continue;
      process.kill(pid, "SIGKILL");
      ended += 1;
    } catch {
      // It ended in this moment, or belongs to another user.
    }
  }
  return ended;
}
