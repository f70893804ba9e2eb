/** Reads how many processes the kernel has ended for lack of memory, from the sandbox's own cgroup of either version. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { MemoryCounter } from "./memory-kills.ts";

/** Version 2 first. */
const FILES = [
  { events: "memory.events", limit: "memory.max" },
  { events: "memory/memory.oom_control", limit: "memory/memory.limit_in_bytes" },
] as const;

/** Version 1 says "no limit" with the largest number of pages. */
const NO_LIMIT_BYTES = 2 ** 60;

/** @param directory where the cgroups are mounted */
export function memoryCounter(directory: string): () => MemoryCounter | undefined {
  // The version of the last success: every start and end of a process reads, and a missing file costs as much as one.
  let known: (typeof FILES)[number] | undefined;
  return () => {
    for (const files of known === undefined ? FILES : [known]) {
      const { events, limit } = files;
      const counter = parseMemoryCounter(read(join(directory, events)), () => read(join(directory, limit)));
      known = counter === undefined ? undefined : files;
      if (counter !== undefined) return counter;
    }
    return undefined;
  };
}

/** Pure. Undefined when the text has no counter. */
export function parseMemoryCounter(events: string, limit: () => string): MemoryCounter | undefined {
  const kills = /^oom_kill (\d+)$/m.exec(events)?.[1];
  if (kills === undefined) return undefined;
  const bytes = Number.parseInt(limit(), 10);
  return { kills: Number(kills), limitBytes: bytes > 0 && bytes < NO_LIMIT_BYTES ? bytes : undefined };
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
