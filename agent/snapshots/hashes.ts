/** sha256 of files, in small steps: one is half a millisecond of this program's time, and the disk is read in between. */

import { createHash, type Hash } from "node:crypto";
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { StoredFile } from "./manifest.ts";

const STEP_BYTES = 512 * 1024;
const POLL_MS = 10;
/** The disk is given so much at a time while more is being written: at the end there is less to wait for. */
const AHEAD_BYTES = 48 * 1024 * 1024;
/** Files that CRIU only appends to, and nearly all of what it writes. */
const GROWING = /^pages-\d+\.img$/;

interface Running {
  readonly hash: Hash;
  offset: number;
  /** Up to here the disk has it, or is being given it. */
  written: number;
}

export interface FollowedHashes {
  /** Nothing is written any more: what was not read yet is read, and these are all files. */
  finish(): Promise<StoredFile[]>;
  stop(): void;
}

/** Reads along while a dump is written: at its end there is little left to hash, and to wait for the disk. */
export function followHashes(directory: string): FollowedHashes {
  const running = new Map<string, Running>();
  const ahead: Promise<unknown>[] = [];
  const state = { over: false };

  const catchUp = async (name: string) => {
    const known = running.get(name) ?? { hash: createHash("sha256"), offset: 0, written: 0 };
    running.set(name, known);
    if (known.offset - known.written >= AHEAD_BYTES) {
      known.written = known.offset;
      ahead.push(writeOut(join(directory, name)).catch(() => undefined));
    }
    known.offset = await feed(join(directory, name), known.hash, { from: known.offset, until: () => state.over });
  };

  const following = (async () => {
    while (!state.over) {
      const names = await readdir(directory).catch(() => [] as string[]);
      for (const name of names.filter((one) => GROWING.test(one))) await catchUp(name);
      await delay(POLL_MS);
    }
  })().catch(() => undefined);

  return {
    async finish() {
      state.over = true;
      await following;
      state.over = false;
      await Promise.all(ahead);
      const files: StoredFile[] = [];
      for (const name of (await readdir(directory)).sort()) {
        await catchUp(name);
        const { size, ctimeMs } = await stat(join(directory, name));
        const { hash, offset } = running.get(name) ?? { hash: createHash("sha256"), offset: -1, written: 0 };
        if (offset !== size) throw new Error(`${name} changed while it was read`);
        files.push({ name, size, sha256: hash.digest("hex"), changedAt: ctimeMs });
      }
      return files;
    },
    stop() {
      state.over = true;
    },
  };
}

export async function sha256(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  await feed(path, hash, { from: 0, until: () => signal.aborted });
  signal.throwIfAborted();
  return hash.digest("hex");
}

async function writeOut(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
}

/** Resolves to how far it came. */
async function feed(
  path: string,
  hash: Hash,
  { from, until }: { from: number; until: () => boolean },
): Promise<number> {
  const file = await open(path, "r");
  try {
    const buffer = Buffer.allocUnsafe(STEP_BYTES);
    let offset = from;
    while (!until()) {
      const { bytesRead } = await file.read(buffer, 0, STEP_BYTES, offset);
      if (bytesRead === 0) break;
      hash.update(buffer.subarray(0, bytesRead));
      offset += bytesRead;
    }
    return offset;
  } finally {
    await file.close();
  }
}
