/** Sums of what nodes have promised: placements that their last report does not have yet. Pure. */

import type { NodeLoad, SandboxDisk } from "../../shared/agent-api/routes.ts";
import { defined } from "../../shared/defined.ts";

export interface Sum {
  readonly count: number;
  readonly cpu: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

export const NOTHING: Sum = { count: 0, cpu: 0, memoryBytes: 0, diskBytes: 0 };

export function plus(a: Sum, b: Sum): Sum {
  return {
    count: a.count + b.count,
    cpu: a.cpu + b.cpu,
    memoryBytes: a.memoryBytes + b.memoryBytes,
    diskBytes: a.diskBytes + b.diskBytes,
  };
}

export function negative({ count, cpu, memoryBytes, diskBytes }: Sum): Sum {
  return { count: -count, cpu: -cpu, memoryBytes: -memoryBytes, diskBytes: -diskBytes };
}

export function withPromised(disk: SandboxDisk | undefined, bytes: number): SandboxDisk | undefined {
  return disk === undefined ? undefined : { ...disk, promisedBytes: Math.max(0, disk.promisedBytes + bytes) };
}

// Never below zero: a report may arrive between the addition and the subtraction.
export function allocated(load: NodeLoad, by: Sum): NodeLoad {
  const sandboxDisk = withPromised(load.sandboxDisk, by.diskBytes);
  return {
    ...load,
    ...defined({ sandboxDisk }),
    allocatedCpu: Math.max(0, load.allocatedCpu + by.cpu),
    allocatedMemoryBytes: Math.max(0, load.allocatedMemoryBytes + by.memoryBytes),
    sandboxCount: Math.max(0, load.sandboxCount + by.count),
  };
}
