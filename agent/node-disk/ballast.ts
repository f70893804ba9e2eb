/**
 * A file that takes room on the disk of the agent's state. When other programs have filled that disk, the agent deletes the
 * file, so that its database can go on, and the agent can start.
 */

import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { RunCommand } from "../host/command.ts";
import type { ReadSpace } from "./space.ts";

const BYTES = 64 * 1024 * 1024;
/** Free bytes below which the disk counts as full. */
const FULL = BYTES / 4;
/** Free bytes from which on the file is made again. */
const ROOM = BYTES * 8;

/** Checks in a row that must find the disk full: what held sandboxes have written before must not take the room. */
const CHECKS = 5;

/**
 * Deletes the file when the disk is full and stays so, or at once, and makes it when there is room. Never throws.
 * @param now at the start of the agent
 */
export type KeepBallast = (now?: "now") => Promise<void>;

export function hostBallast(directory: string, run: RunCommand, readSpace: ReadSpace): KeepBallast {
  const path = join(directory, "ballast");
  const state = { full: 0 };
  return async (now) => {
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const { freeBytes } = await readSpace(directory);
      if (existsSync(path)) {
        state.full = freeBytes < FULL ? state.full + 1 : 0;
        if (state.full >= (now === undefined ? CHECKS : 1)) await rm(path, { force: true });
      } else if (freeBytes > ROOM) await run("fallocate", ["--length", String(BYTES), path]);
    } catch {
      // A file system without fallocate has no such file.
    }
  };
}
