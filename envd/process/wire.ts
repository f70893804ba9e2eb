/** Constructs the table of processes, and what explains why the kernel ended one. */

import { join } from "node:path";
import type { Journal } from "../runtime/journal.ts";
import type { Limits } from "../runtime/own-limits.ts";
import type { System } from "../system/system.ts";
import { memoryCounter } from "./memory-counter.ts";
import { MemoryKills } from "./memory-kills.ts";
import { ProcessTable } from "./process-table.ts";

interface ProcessesConfig {
  readonly root: string;
  readonly now: () => number;
}

interface ProcessesDeps {
  readonly system: System;
  readonly journal: Journal;
  readonly limits: Limits;
}

export function createProcesses({ root, now }: ProcessesConfig, { system, journal, limits }: ProcessesDeps) {
  const memoryKills = new MemoryKills({ read: memoryCounter(join(root, "sys/fs/cgroup")), journal, now });
  return { table: new ProcessTable(system, journal, limits, memoryKills), memoryKills };
}
