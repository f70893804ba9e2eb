/**
 * Writes a stored tree to this node: into a place beside its own, every blob verified before a byte of it is written, flushed, and
 * then renamed. What has its own name is complete; a download that was cut leaves only a draft, which the next one removes.
 */

import { constants } from "node:fs";
import { chmod, lstat, mkdir, open, rename, rm, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { sync } from "../host/sync.ts";
import { BlobError, codeOf } from "./content/blob-error.ts";
import type { BlobReader } from "./sources.ts";
import { runTransfers, type Transfers } from "./transfers.ts";
import { withoutZeros } from "./trees/extents.ts";
import { dataBytes, type Entry, files, readManifest, type TreeManifest } from "./trees/manifest.ts";

const UNFINISHED = ".new";
const SYNCS_AT_ONCE = 8;

export interface DownloadProgress {
  readonly totalBytes: number;
  readonly doneBytes: number;
}

export interface DownloadDeps {
  readonly reader: BlobReader;
  readonly transfers: Transfers;
}

/** The manifest of this reference, verified like every blob. @throws {BlobError} */
export async function fetchManifest(reader: BlobReader, ref: string, signal: AbortSignal): Promise<TreeManifest> {
  return readManifest(ref, await reader.read(ref, signal));
}

/**
 * Resolves when the tree has its name and is durable. One download at a time has this name.
 * @param to must not exist; its directory must
 * @throws {BlobError}
 */
export async function downloadTree(
  { reader, transfers }: DownloadDeps,
  {
    manifest,
    to,
    progress,
  }: {
    readonly manifest: TreeManifest;
    readonly to: string;
    readonly progress?: (now: DownloadProgress) => void;
  },
  signal: AbortSignal,
): Promise<void> {
  if (await exists(to)) throw new BlobError("changed", `${to} is there already: nothing is downloaded over it`);
  const draft = draftOf(to);
  await rm(draft, { recursive: true, force: true });
  const place = (path: string) => (path === "" ? draft : join(draft, path));
  const state = { totalBytes: dataBytes(manifest), doneBytes: 0 };
  try {
    await makeEmpty(manifest.entries, place);
    progress?.({ ...state });
    await runTransfers(transfers, piecesByBlob(manifest), signal, async ({ ref, length, pieces }, cut) => {
      const content = await reader.read(ref, cut);
      if (content.length !== length)
        throw new BlobError("damaged", `blob ${ref} has ${content.length} bytes, and its manifest says ${length}`);
      for (const { path, at, from, length } of pieces) {
        cut.throwIfAborted();
        await writePiece(place(path), at, content.subarray(from, from + length));
        state.doneBytes += length;
      }
      progress?.({ ...state });
    });
    await finish(manifest.entries, place);
    signal.throwIfAborted();
    await rename(draft, to);
    await sync(dirname(to));
  } catch (error) {
    await rm(draft, { recursive: true, force: true }).catch(() => undefined);
    throw /^(ENOSPC|EDQUOT)$/.test(codeOf(error) ?? "")
      ? new BlobError("full", `this node's disk is full: it cannot hold ${to}`, { cause: error })
      : error;
  }
}

/** Where a download writes until it is complete. */
export function draftOf(to: string): string {
  return join(dirname(to), `.${basename(to)}${UNFINISHED}`);
}

interface BlobPieces {
  readonly ref: string;
  readonly length: number;
  readonly pieces: readonly {
    readonly path: string;
    readonly at: number;
    readonly from: number;
    readonly length: number;
  }[];
}

/** Each blob with all its places, so that it is read once. */
function* piecesByBlob({ blobs, entries }: TreeManifest): Generator<BlobPieces> {
  const places = blobs.map((): { path: string; at: number; from: number; length: number }[] => []);
  for (const { path, pieces } of files(entries))
    for (const [at, length, index, from] of pieces) places[index]?.push({ path, at, from, length });
  for (const [index, [ref, length]] of blobs.entries()) yield { ref, length, pieces: places[index] ?? [] };
}

async function makeEmpty(entries: readonly Entry[], place: (path: string) => string): Promise<void> {
  for (const entry of entries) {
    if (entry.type === "directory") await mkdir(place(entry.path), { mode: 0o700 });
    if (entry.type !== "file") continue;
    const file = await open(place(entry.path), "wx", 0o600);
    try {
      await file.truncate(entry.size);
    } finally {
      await file.close();
    }
  }
}

async function writePiece(path: string, at: number, content: Buffer): Promise<void> {
  const file = await open(path, constants.O_WRONLY | constants.O_NOFOLLOW);
  try {
    for (const part of withoutZeros(at, content)) {
      let done = 0;
      while (done < part.bytes.length)
        done += (await file.write(part.bytes, done, part.bytes.length - done, part.at + done)).bytesWritten;
    }
  } finally {
    await file.close();
  }
}

/** Modes, links and flushes. From the last entry to the first, so that a directory is closed to writes after what is in it. */
async function finish(entries: readonly Entry[], place: (path: string) => string): Promise<void> {
  const last = entries.toReversed();
  for (const entry of last) if (entry.type === "link") await symlink(entry.target, place(entry.path));
  const next = last.filter((entry) => entry.type === "file").values();
  const worker = async () => {
    for (const { path, mode } of next) {
      await sync(place(path));
      await chmod(place(path), mode);
    }
  };
  await Promise.all(Array.from({ length: SYNCS_AT_ONCE }, worker));
  for (const entry of last) {
    if (entry.type !== "directory") continue;
    await sync(place(entry.path));
    await chmod(place(entry.path), entry.mode);
  }
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) === "ENOENT") return false;
      throw error;
    },
  );
}
