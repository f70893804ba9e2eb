/** Constructs the log and the memory of an idle envd, and reads the limits that children get back. */

import { readFileSync } from "node:fs";
import { collectGarbage, heapBytes, IdleMemory } from "./idle-memory.ts";
import { Journal } from "./journal.ts";
import { childLimits, type Limits } from "./own-limits.ts";

interface Runtime {
  readonly journal: Journal;
  readonly idleMemory: IdleMemory;
  readonly limits: Limits;
}

export function createRuntime({ now }: { readonly now: () => number }): Runtime {
  return {
    journal: new Journal(now),
    idleMemory: new IdleMemory({ used: heapBytes, collect: collectGarbage }),
    limits: childLimits(read("/proc/self/oom_score_adj"), read(`/proc/${process.ppid}/limits`)),
  };
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
