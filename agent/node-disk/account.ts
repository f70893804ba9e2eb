/** Adds up what the node has promised of the disk that sandboxes are on, and what of that is used. */

import type { Resources, SandboxDisk } from "../../shared/agent-api/routes.ts";
import type { DiskReserve } from "./reserve.ts";
import { levelOf } from "./space.ts";

const MIB = 1024 ** 2;

/** A disk that the node has promised: of a running or paused sandbox, or a build. */
export interface PromisedDisk {
  readonly containerId: string;
  readonly resources: Pick<Resources, "diskSizeMB">;
  /** As last measured; 0 before the first measurement. */
  readonly usedBytes: number;
}

/** A container counts once, also when it is listed twice, as that of a sandbox that has just been paused. Pure. */
function sumOfDisks(disks: Iterable<PromisedDisk>): Pick<SandboxDisk, "promisedBytes" | "usedBytes"> {
  const sum = { promisedBytes: 0, usedBytes: 0 };
  const counted = new Set<string>();
  for (const { containerId, resources, usedBytes } of disks) {
    if (counted.has(containerId)) continue;
    counted.add(containerId);
    sum.promisedBytes += resources.diskSizeMB * MIB;
    sum.usedBytes += usedBytes;
  }
  return sum;
}

export interface DiskAccount {
  /** Undefined before the disk was measured for the first time. */
  load(): SandboxDisk | undefined;
}

export function createDiskAccount(seen: DiskReserve["seen"], promised: () => Iterable<PromisedDisk>): DiskAccount {
  return {
    load() {
      const measured = seen()?.sandboxes;
      if (measured === undefined) return undefined;
      const { space, reserve } = measured;
      return {
        ...sumOfDisks(promised()),
        freeBytes: space.freeBytes,
        reserveBytes: reserve.bytes,
        short: levelOf(space, reserve).is === "short",
      };
    },
  };
}
