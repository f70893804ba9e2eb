/** Copies of disk images for containers: those of stored disks a few at a time, and only while the machine's disk has room for all. */

import { type FileHandle, open } from "node:fs/promises";
import type { AppError } from "../../shared/http/errors.ts";
import { createSemaphore } from "../../shared/program/semaphore.ts";
import type { RunCommand } from "../host/command.ts";

/** For a turn, and then for the copy; a start may not take longer. */
const CLONE_LIMIT_MS = 25_000;
const BLOCK = 512;

interface Clones {
  clone(from: string, to: string): Promise<void>;
  /** @param paths of one stored disk, of which the first that is there counts */
  cloneStored(paths: readonly string[], to: string): Promise<void>;
  /** What a stored disk takes on the machine's disk. */
  bytes(paths: readonly string[]): Promise<number>;
}

interface ClonesDeps {
  readonly run: RunCommand;
  /** Copies of stored disks at a time. */
  readonly atOnce: number;
  /** Why this many bytes more may not be written. */
  readonly refusal: (bytes: number) => Promise<AppError | undefined>;
}

export function createClones({ run, atOnce, refusal }: ClonesDeps): Clones {
  const turns = createSemaphore(atOnce);
  const state = { bytes: 0 };

  const clone = async (from: string, to: string) => {
    await run("cp", ["--reflink=auto", "--sparse=always", "--", from, to], { timeoutMs: CLONE_LIMIT_MS });
  };

  return {
    clone,
    async cloneStored(paths, to) {
      const release = await turns.take(AbortSignal.timeout(CLONE_LIMIT_MS));
      try {
        // The disk may get its name while it is copied, so the copy is made of what is open.
        await opened(paths, async (file) => {
          const bytes = await usedBy(file);
          state.bytes += bytes;
          try {
            const refused = await refusal(state.bytes);
            if (refused !== undefined) throw refused;
            await clone(`/proc/${process.pid}/fd/${file.fd}`, to);
          } finally {
            state.bytes -= bytes;
          }
        });
      } finally {
        release();
      }
    },
    bytes: (paths) => opened(paths, usedBy),
  };
}

async function openFirst([path = "", ...others]: readonly string[]): Promise<FileHandle> {
  return open(path).catch((error: unknown) => {
    if (others.length === 0) throw error;
    return openFirst(others);
  });
}

async function opened<Result>(paths: readonly string[], use: (file: FileHandle) => Promise<Result>): Promise<Result> {
  const file = await openFirst(paths);
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}

async function usedBy(file: FileHandle): Promise<number> {
  return (await file.stat()).blocks * BLOCK;
}
