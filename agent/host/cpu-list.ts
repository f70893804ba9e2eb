/** Lists of processors as the kernel writes them, and the list of this program. */

import { readFileSync } from "node:fs";
import { cpus } from "node:os";

/** The processors that this program may use, and so may sandboxes. */
export function allowedCpus(): number[] {
  const list = /^Cpus_allowed_list:\s+(\S+)$/m.exec(status())?.[1] ?? "";
  const found = parseCpus(list);
  return found.length > 0 ? found : cpus().map((_, index) => index);
}

function status(): string {
  try {
    return readFileSync("/proc/self/status", "utf8");
  } catch {
    return "";
  }
}

/** Reads a list as the kernel writes it: `0-2,5`. */
export function parseCpus(list: string): number[] {
  return list
    .trim()
    .split(",")
    .filter((part) => /^\d+(-\d+)?$/.test(part))
    .flatMap((part) => {
      const [first = 0, last = first] = part.split("-").map(Number);
      return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
    });
}

export function formatCpus(cpus: readonly number[]): string {
  return cpus.join(",");
}
