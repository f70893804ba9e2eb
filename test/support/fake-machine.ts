/** A machine with room for everything, unless a test says how much is free. */

import type { Machine } from "../../agent/machine.ts";

export function fakeMachine(freeMemory: () => number): Machine {
  return {
    facts: { cpuFamily: "", cpuModel: "", cpuModelName: "", cpuArchitecture: "x86_64" },
    id: "fake",
    cpuFlags: "sse2",
    load: () => ({ cpuCount: 2, cpuPercent: 0, memoryTotalBytes: 2 ** 34, memoryUsedBytes: 0, disks: [] }),
    freeMemory,
  };
}
