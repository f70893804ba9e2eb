/** Free room of a file system, and the reserve that sandboxes never get. */

import { stat, statfs } from "node:fs/promises";
import { AppError } from "../../shared/http/errors.ts";

const MIB = 1024 ** 2;
/** Share of the disk that is kept free without a setting. */
const RESERVED_SHARE = 0.1;
const MOST_INODES_RESERVED = 100_000;
const INODES_SHARE = 0.02;
/** A held sandbox is released when this much more than the reserve is free, so that it is not held again at once. */
const MARGIN = 1.1;
/** Below this multiple of the reserve the agent begins to count what each sandbox writes. */
const NEAR = 2;
/** Below this share of the reserve the agent holds a sandbox even if it is not certain which one grows. */
const URGENT = 0.5;

export interface Space {
  /** Equal for directories of one file system. */
  readonly device: number;
  /** Bytes that programs without root's privilege may still use. */
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly freeInodes: number;
  /** 0: the file system makes inodes as needed. */
  readonly totalInodes: number;
}

/** Room of the file system of a directory. */
export type ReadSpace = (directory: string) => Promise<Space>;

export const readSpace: ReadSpace = async (directory) => {
  const [{ bavail, bsize, blocks, ffree, files }, { dev: device }] = await Promise.all([
    statfs(directory),
    stat(directory),
  ]);
  return { device, freeBytes: bavail * bsize, totalBytes: blocks * bsize, freeInodes: ffree, totalInodes: files };
};

/** The room that a node keeps free. */
export interface Reserve {
  readonly bytes: number;
  readonly inodes: number;
}

/** @param configuredMb of SVC_DISK_RESERVE_MB; without it a tenth of the disk */
export function reserveOf({ totalBytes, totalInodes }: Space, configuredMb: number | undefined): Reserve {
  return {
    bytes: configuredMb === undefined ? Math.ceil(totalBytes * RESERVED_SHARE) : configuredMb * MIB,
    inodes: configuredMb === 0 ? 0 : Math.min(MOST_INODES_RESERVED, totalInodes * INODES_SHARE),
  };
}

/** How full the disk is: `short` names what is short and how badly; `near` and `enough` hold for bytes and inodes. */
export type DiskLevel =
  | { readonly is: "short"; readonly of: "bytes" | "inodes"; readonly urgent: boolean }
  | { readonly is: "near" | "enough" };

/** Pure. */
export function levelOf({ freeBytes, freeInodes }: Space, reserve: Reserve): DiskLevel {
  if (freeBytes < reserve.bytes) return { is: "short", of: "bytes", urgent: freeBytes < reserve.bytes * URGENT };
  if (freeInodes < reserve.inodes) return { is: "short", of: "inodes", urgent: freeInodes < reserve.inodes * URGENT };
  const times = (factor: number) => freeBytes < reserve.bytes * factor || freeInodes < reserve.inodes * factor;
  if (times(MARGIN) || times(NEAR)) return { is: "near" };
  return { is: "enough" };
}

/** Whether held sandboxes can be released. Pure. */
export function mayRelease({ freeBytes, freeInodes }: Space, reserve: Reserve): boolean {
  return freeBytes >= reserve.bytes * MARGIN && freeInodes >= reserve.inodes * MARGIN;
}

/** The answer to callers while there is too little room: names the reserve, its setting and the way out. */
export function shortage({ freeBytes, freeInodes }: Space, reserve: Reserve, of: "bytes" | "inodes"): AppError {
  const room =
    of === "bytes"
      ? `${Math.floor(freeBytes / MIB)} MiB free and keeps ${Math.ceil(reserve.bytes / MIB)} MiB in reserve`
      : `room for ${freeInodes} files and keeps room for ${Math.ceil(reserve.inodes)} in reserve`;
  return new AppError(
    "no_space",
    `the node's disk has ${room} (SVC_DISK_RESERVE_MB): nothing new is started or stored there until sandboxes or snapshots are deleted or its operator makes room`,
  );
}

/** Why `bytes` more cannot be written: the reserve would not remain. A reserve of 0 refuses nothing. Pure. */
export function tooLarge({ freeBytes }: Space, reserve: Reserve, bytes: number): AppError | undefined {
  if (reserve.bytes === 0 || freeBytes - bytes >= reserve.bytes) return undefined;
  const room = `the node's disk has ${Math.floor(freeBytes / MIB)} MiB free and keeps ${Math.ceil(reserve.bytes / MIB)} MiB in reserve (SVC_DISK_RESERVE_MB)`;
  return new AppError(
    "no_space",
    `the snapshot takes about ${Math.ceil(bytes / MIB)} MiB, and ${room}: delete sandboxes or snapshots, or ask the node's operator to make room`,
  );
}
