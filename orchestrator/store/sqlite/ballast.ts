/**
 * A file beside the SQLite database that holds room back: on a full disk it is deleted, so that kills and pauses can still
 * be recorded, and written again once there is room. Nothing new begins while it is missing.
 */

import { closeSync, fsyncSync, openSync, rmSync, statfsSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";

export interface Ballast {
  /** Deletes the file. False: there was none to delete. */
  release(): boolean;
  /** Makes the file whole. @throws the error of the disk, which still has no room */
  keep(): void;
  /** Deletes the file when the disk is full, so that the database can be opened. */
  makeRoom(): void;
}

const BYTES = 4 * 1024 * 1024;
/** Free bytes below which a database cannot be opened. */
const TO_OPEN = 1024 * 1024;
const CHUNK = Buffer.alloc(64 * 1024);

/** For a database without a file of its own. */
export const noBallast: Ballast = { release: () => false, keep: () => undefined, makeRoom: () => undefined };

export function fileBallast(path: string): Ballast {
  return {
    release() {
      const there = statSync(path, { throwIfNoEntry: false }) !== undefined;
      rmSync(path, { force: true });
      return there;
    },
    makeRoom() {
      const { bavail, bsize } = statfsSync(dirname(path));
      if (bavail * bsize < TO_OPEN) rmSync(path, { force: true });
    },
    keep() {
      if (statSync(path, { throwIfNoEntry: false })?.size === BYTES) return;
      const file = openSync(path, "w", 0o600);
      try {
        for (let written = 0; written < BYTES; written += CHUNK.length) writeSync(file, CHUNK);
        fsyncSync(file);
      } catch (error) {
        rmSync(path, { force: true });
        throw error;
      } finally {
        closeSync(file);
      }
    },
  };
}
