/** Computes sha256 of files in small steps: each blocks this program for a third of a millisecond, while the disk reads. */

import { createHash, type Hash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay, setImmediate as others } from "node:timers/promises";
import type { StoredFile } from "./manifest.ts";

const STEP_BYTES = 512 * 1024;
const POLL_MS = 10;
/** Bytes of all files that wait for a flush to the disk, from which on one of them is flushed, so that less is left at the end. */
const AHEAD_BYTES = 32 * 1024 * 1024;
/** Files to which CRIU only appends: nearly all that it writes. */
const GROWING = /^pages-\d+\.img$/;
/**
 * Small files are read at once, without queueing behind large ones and their flushes: there are fifty of a few kilobytes, and
 * hundreds where a browser or a desktop runs, some for each process and one for each thread.
 */
const SMALL_BYTES = 64 * 1024;
/** Small files after which others have their turn: a third of a millisecond. */
const SMALL_AT_ONCE = 8;

interface FollowedFile {
  readonly hash: Hash;
  offset: number;
  /** Offset up to which the data is flushed, or being flushed. */
  written: number;
}

export interface FollowedHashes {
  /** Called when the dump is complete: reads the rest. Resolves to all files. */
  finish(): Promise<StoredFile[]>;
  stop(): void;
}

/** Hashes files while a dump is written, and flushes them to the disk, so that little is left of both at its end. */
export function followHashes(directory: string): FollowedHashes {
  const running = new Map<string, FollowedFile>();
  const state: { over: boolean; writing: Promise<void> | undefined } = { over: false, writing: undefined };

  const begin = (name: string): FollowedFile => {
    const known = running.get(name) ?? { hash: createHash("sha256"), offset: 0, written: 0 };
    running.set(name, known);
    return known;
  };

  // Flushes in every step, not at the end of the data: a dump can be faster than the hashing all the time. What counts is all files:
  // a desktop has forty processes, and none of them as much as that.
  const writeAhead = () => {
    if (state.writing !== undefined) return;
    const left = [...running].map(([name, known]) => ({ name, known, bytes: known.offset - known.written }));
    if (left.reduce((sum, { bytes }) => sum + bytes, 0) < AHEAD_BYTES) return;
    const { name, known } = left.reduce((most, one) => (one.bytes > most.bytes ? one : most));
    known.written = known.offset;
    state.writing = writeOut(join(directory, name))
      .catch(() => undefined)
      .finally(() => {
        state.writing = undefined;
      });
  };

  const catchUp = async (name: string): Promise<FollowedFile> => {
    const known = begin(name);
    const passed = (offset: number) => {
      known.offset = offset;
      writeAhead();
    };
    await feed(join(directory, name), known.hash, { from: known.offset, until: () => state.over, passed });
    return known;
  };

  // CRIU writes one process after the other: nearly all files of a dump of many are complete, and are not opened again.
  const hasMore = (name: string) => {
    const found = statSync(join(directory, name), { throwIfNoEntry: false });
    return found !== undefined && found.size > (running.get(name)?.offset ?? 0);
  };

  const following = (async () => {
    while (!state.over) {
      const names = await readdir(directory).catch(() => [] as string[]);
      for (const name of names.filter((one) => GROWING.test(one) && hasMore(one))) await catchUp(name);
      await delay(POLL_MS);
    }
  })().catch(() => undefined);

  const complete = async (name: string): Promise<StoredFile> => {
    const path = join(directory, name);
    const isSmall = !running.has(name) && statSync(path).size <= SMALL_BYTES;
    if (isSmall) readWhole(path, begin(name));
    else if (hasMore(name)) await catchUp(name);
    const known = begin(name);
    const { size, ctimeMs } = statSync(path);
    if (known.offset !== size) throw new Error(`${name} changed while it was read`);
    return { name, size, sha256: known.hash.digest("hex"), changedAt: ctimeMs };
  };

  return {
    async finish() {
      state.over = true;
      await following;
      state.over = false;
      const files: StoredFile[] = [];
      for (const name of (await readdir(directory)).sort()) {
        files.push(await complete(name));
        if (files.length % SMALL_AT_ONCE === 0) await others();
      }
      await state.writing;
      return files;
    },
    stop() {
      state.over = true;
    },
  };
}

function readWhole(path: string, known: FollowedFile): void {
  const bytes = readFileSync(path);
  known.hash.update(bytes);
  known.offset = bytes.length;
}

/** @param passed called with each offset that it reaches */
export async function sha256(path: string, signal: AbortSignal, passed?: (offset: number) => void): Promise<string> {
  const hash = createHash("sha256");
  await feed(path, hash, { from: 0, until: () => signal.aborted, passed });
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

/** Resolves to the offset that it reached. The next step is read while one is hashed. */
async function feed(
  path: string,
  hash: Hash,
  {
    from,
    until,
    passed = () => undefined,
  }: { from: number; until: () => boolean; passed?: ((offset: number) => void) | undefined },
): Promise<number> {
  const file = await open(path, "r");
  const read = (buffer: Buffer, at: number) => file.read(buffer, 0, STEP_BYTES, at);
  let [buffer, spare] = [Buffer.allocUnsafe(STEP_BYTES), Buffer.allocUnsafe(STEP_BYTES)];
  let offset = from;
  let next = until() ? undefined : read(buffer, offset);
  try {
    while (next !== undefined) {
      const { bytesRead } = await next;
      next = undefined;
      if (bytesRead === 0) break;
      [buffer, spare] = [spare, buffer];
      offset += bytesRead;
      if (!until()) next = read(buffer, offset);
      hash.update(spare.subarray(0, bytesRead));
      passed(offset);
    }
    return offset;
  } finally {
    await next?.catch(() => undefined);
    await file.close();
  }
}
