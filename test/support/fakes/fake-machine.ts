/** A machine with room for everything, unless a test says how much is free. */

import type { Machine } from "../../../agent/host/machine.ts";
import type { NodeDisks } from "../../../agent/node-disk/host-disks.ts";
import type { DiskReserve } from "../../../agent/node-disk/reserve.ts";
import type { Volumes } from "../../../agent/volumes/volumes.ts";
import type { NodeFacts } from "../../../shared/agent-api/routes.ts";

export function fakeMachine(freeMemory: () => number): Machine {
  return {
    facts: { cpuFamily: "", cpuModel: "", cpuModelName: "", cpuArchitecture: "x86_64" },
    id: "fake",
    bootId: "fake",
    cpuFlags: "sse2",
    load: () => ({ cpuCount: 2, cpuPercent: 0, memoryTotalBytes: 2 ** 34, memoryUsedBytes: 0, disks: [] }),
    freeMemory,
    limits: () => ({}),
    sinceBoot: () => performance.now(),
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

/** Disks with room for everything, and sandboxes that write nothing. */
export const fakeDisks: NodeDisks = {
  work: () => ({ make: NONE, ahead: NONE, frozen: NONE }),
  usage: () => Promise.resolve(4_096),
  findHole: () => Promise.resolve(undefined),
  readSpace: () => Promise.resolve(plenty),
  keepBallast: () => Promise.resolve(),
  growth: { written: () => 0, countFiles: () => Promise.resolve(0) },
};

export const noVolumes: Volumes = {
  make: () => Promise.resolve(),
  open: (id: string) => Promise.resolve(`/volumes/${id}`),
  remove: () => Promise.resolve(),
  capacityMb: () => Promise.resolve(undefined),
  list: () => [],
};

/** A node that can do everything. */
export const able: NodeFacts["capabilities"] = {
  memorySnapshots: true,
  lazyPages: true,
  diskLimit: false,
  volumes: false,
  detail: { criu: "4", runc: "1" },
};

/** A reserve that no write comes near to. */
export const roomyDisk: Pick<DiskReserve, "snapshotRefusal" | "storageRefusal" | "disks" | "seen"> = {
  snapshotRefusal: () => undefined,
  storageRefusal: () => Promise.resolve(undefined),
  disks: () => Promise.resolve({ snapshots: plenty, sandboxes: plenty }),
  seen: () => undefined,
};
