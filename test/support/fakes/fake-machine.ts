/** A machine with room for everything, unless a test says how much is free. */

import type { Machine } from "../../../agent/host/machine.ts";
import type { DiskReserve } from "../../../agent/node-disk/reserve.ts";

export function fakeMachine(freeMemory: () => number): Machine {
  return {
    facts: { cpuFamily: "", cpuModel: "", cpuModelName: "", cpuArchitecture: "x86_64" },
    id: "fake",
    cpuFlags: "sse2",
    load: () => ({ cpuCount: 2, cpuPercent: 0, memoryTotalBytes: 2 ** 34, memoryUsedBytes: 0, disks: [] }),
    freeMemory,
    limits: () => ({}),
  };
}

export const fakeFacts = {
  version: "0",
  storageDriver: "fake",
  diskLimit: false,
  seccomp: true,
  runcVersion: "0",
  diskDetail: "reported only",
  dataRoot: "/layers",
  writableRoot: "/layers",
};

const plenty = { device: 1, freeBytes: 2 ** 40, totalBytes: 2 ** 41, freeInodes: 2 ** 30, totalInodes: 2 ** 31 };

const NONE = { count: 0, seconds: 0 };

/** A disk with room for everything, and sandboxes that write nothing. */
export const fakeDisk = {
  diskWork: () => ({ make: NONE, ahead: NONE, frozen: NONE }),
  diskUsage: () => Promise.resolve(4_096),
  traffic: () => ({ sentBytes: 0, receivedBytes: 0 }),
  findHole: () => Promise.resolve(undefined),
  volumes: {
    make: () => Promise.resolve(),
    open: (id: string) => Promise.resolve(`/volumes/${id}`),
    remove: () => Promise.resolve(),
    capacityMb: () => Promise.resolve(undefined),
    list: () => [],
  },
  volumeProgram: () => Promise.resolve("/svc-volume-files"),
  readSpace: () => Promise.resolve(plenty),
  keepBallast: () => Promise.resolve(),
  growth: { written: () => 0, countFiles: () => Promise.resolve(0) },
};

/** A reserve that no write comes near to. */
export const roomyDisk: Pick<DiskReserve, "snapshotRefusal" | "storageRefusal" | "disks" | "seen"> = {
  snapshotRefusal: () => undefined,
  storageRefusal: () => Promise.resolve(undefined),
  disks: () => Promise.resolve({ snapshots: plenty, sandboxes: plenty }),
  seen: () => undefined,
};
