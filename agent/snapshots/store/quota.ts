/** Adds up the stored snapshots of a node, and compares them with the quotas of the node and of each project. Pure. */

import { AppError } from "../../../shared/http/errors.ts";
import type { Disks } from "../../node-disk/reserve.ts";
import type { Snapshot } from "../../store/snapshots.ts";

const MIB = 1024 ** 2;
/** Share of a disk that snapshots may take without a setting. */
const SHARE = 0.5;

/** Bytes of memory images, and of disks that belong to no running sandbox. */
export interface Amount {
  readonly memory: number;
  readonly disk: number;
}

export interface QuotaSettings {
  /** Undefined: half of each disk. 0: none. */
  readonly snapshotQuotaMb?: number | undefined;
  /** 0: none. */
  readonly projectSnapshotQuotaMb: number;
}

/** A limit for what is stored on a node; without a setting there is one for each disk. */
interface Quota {
  readonly bytes: number;
  readonly counts: (amount: Amount) => number;
}

const all = ({ memory, disk }: Amount) => memory + disk;

export function nodeQuotas({ snapshots, sandboxes }: Disks, { snapshotQuotaMb }: QuotaSettings): readonly Quota[] {
  if (snapshotQuotaMb === 0) return [];
  if (snapshotQuotaMb !== undefined) return [{ bytes: snapshotQuotaMb * MIB, counts: all }];
  if (snapshots.device === sandboxes.device) return [{ bytes: sandboxes.totalBytes * SHARE, counts: all }];
  return [
    { bytes: snapshots.totalBytes * SHARE, counts: ({ memory }) => memory },
    { bytes: sandboxes.totalBytes * SHARE, counts: ({ disk }) => disk },
  ];
}

/** Of the sandbox of a spent pause, which runs again, only the memory image is stored. */
export function storedBy(snapshots: readonly Pick<Snapshot, "state" | "memoryBytes" | "diskBytes">[]): Amount {
  const stored = snapshots.filter(({ state }) => state !== "taking");
  return sum(
    stored.map(({ state, memoryBytes, diskBytes }) => ({
      memory: memoryBytes,
      disk: state === "spent" ? 0 : diskBytes,
    })),
  );
}

export function sum(amounts: readonly Amount[]): Amount {
  return amounts.reduce((one, { memory, disk }) => ({ memory: one.memory + memory, disk: one.disk + disk }), {
    memory: 0,
    disk: 0,
  });
}

interface QuotaCheck {
  /** Estimated size of the new snapshot. */
  readonly expected: Amount;
  /** Stored amounts: of the whole node, and of the snapshot's project; undefined without a project. */
  readonly stored: Amount;
  readonly ofProject: Amount | undefined;
  readonly settings: QuotaSettings;
  readonly disks: Disks;
}

/** The reason why the snapshot must not be taken, with the quota, what is stored and the way out. */
export function quotaRefusal({ expected, stored, ofProject, settings, disks }: QuotaCheck): AppError | undefined {
  const project = settings.projectSnapshotQuotaMb * MIB;
  if (ofProject !== undefined && project > 0 && all(ofProject) + all(expected) > project) {
    return new AppError(
      "no_space",
      `the project's quota of ${mib(project)} for stored snapshots (SVC_PROJECT_SNAPSHOT_QUOTA_MB) is used up: ` +
        `${stores("its snapshots and paused sandboxes", all(ofProject), all(expected))}; ` +
        "delete snapshots or paused sandboxes of the project, or pause without memory",
    );
  }
  for (const { bytes, counts } of nodeQuotas(disks, settings)) {
    if (counts(stored) + counts(expected) <= bytes) continue;
    return new AppError(
      "no_space",
      `the node's quota of ${mib(bytes)} for stored snapshots (SVC_SNAPSHOT_QUOTA_MB) is used up: ` +
        `${stores("snapshots and paused sandboxes", counts(stored), counts(expected))}; ` +
        "delete snapshots or paused sandboxes, pause without memory, or ask the node's operator for more",
    );
  }
  return undefined;
}

function stores(what: string, stored: number, expected: number): string {
  return `${what} take ${mib(stored)} there, and this one would add about ${mib(expected)}`;
}

function mib(bytes: number): string {
  return `${Math.ceil(bytes / MIB)} MiB`;
}
