/** Puts bytes into a file in place, as they arrive: never a temporary file, never the whole body in memory. */

import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { posix } from "node:path";
import { AppError } from "../../shared/errors.ts";
import { errnoOf, fileError } from "../errno.ts";
import { makeDirectories } from "../filesystem/tree.ts";
import type { Attributes, System } from "../system/system.ts";
import { SystemError } from "../system/system.ts";
import type { User } from "../users.ts";

export interface FileTarget {
  /** Absolute. */
  readonly path: string;
  readonly owner: Pick<User, "uid" | "gid">;
  /** Replaces all metadata the file has. */
  readonly metadata: Attributes;
}

/** One write call for this much: few calls for large files, and exactly one for small ones (watchers count them). */
const BATCH_BYTES = 1024 * 1024;
/** The kernel takes no more pieces at once. */
const BATCH_PIECES = 1024;

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NONBLOCK;
const EMPTY = constants.O_WRONLY | constants.O_TRUNC | constants.O_NONBLOCK;
const REPLACE = EMPTY | constants.O_CREAT;

/**
 * Makes missing parents, then the file (0644) or empties the one that is there (keeping its mode), owned by the user.
 * @throws {AppError} bad_request for a directory or device, no_space; whatever was written by then stays
 */
export async function writeFileFrom(
  source: AsyncIterable<Buffer>,
  { path, owner, metadata }: FileTarget,
  system: Pick<System, "setAttributes">,
): Promise<void> {
  try {
    const { file, created } = await openTarget(path, owner);
    try {
      if (!(await file.stat()).isFile()) throw new AppError("bad_request", `path '${path}' is not a regular file`);
      await file.chown(owner.uid, owner.gid);
      if (!created || Object.keys(metadata).length > 0) await replaceMetadata(file, metadata, system);
      await copyInto(file, source);
    } finally {
      await file.close();
    }
  } catch (error) {
    throw fileError(error, path);
  }
}

async function openTarget(path: string, owner: FileTarget["owner"]): Promise<{ file: FileHandle; created: boolean }> {
  try {
    return { file: await open(path, CREATE, 0o644), created: true };
  } catch (error) {
    switch (errnoOf(error)) {
      case "EEXIST":
        return { file: await openExisting(path), created: false };
      case "ENOENT":
        await makeDirectories(posix.dirname(path), owner);
        return { file: await open(path, REPLACE, 0o644), created: true };
      default:
        throw error;
    }
  }
}

// Non-blocking, so that a pipe nobody reads is refused instead of waited for. Without O_CREAT: in a sticky directory the
// kernel refuses that to everybody but the file's owner, also to root (fs.protected_regular).
async function openExisting(path: string): Promise<FileHandle> {
  try {
    return await open(path, EMPTY);
  } catch (error) {
    // A link whose target is still to be made.
    if (errnoOf(error) === "ENOENT") return open(path, REPLACE, 0o644);
    throw error;
  }
}

// Through the descriptor, so that it is this very file whatever happens to its name.
async function replaceMetadata(
  file: FileHandle,
  metadata: Attributes,
  system: Pick<System, "setAttributes">,
): Promise<void> {
  try {
    await system.setAttributes(`/proc/${process.pid}/fd/${file.fd}`, metadata);
  } catch (error) {
    if (error instanceof SystemError && error.errno === "EOPNOTSUPP")
      throw new AppError("failed_precondition", "the file system of this path keeps no metadata", { cause: error });
    throw error;
  }
}

async function copyInto(file: FileHandle, source: AsyncIterable<Buffer>): Promise<void> {
  let batch: Buffer[] = [];
  let size = 0;
  // One batch is written while the next is received.
  let writing: Promise<void> = Promise.resolve();
  let failed = false;
  const flush = async () => {
    await writing;
    const full = batch;
    batch = [];
    size = 0;
    writing = writeAll(file, full);
    writing.catch(() => (failed = true));
  };
  try {
    for await (const chunk of source) {
      batch.push(chunk);
      size += chunk.length;
      if (failed || size >= BATCH_BYTES || batch.length >= BATCH_PIECES) await flush();
    }
    if (size > 0) await flush();
  } finally {
    await writing;
  }
}

async function writeAll(file: FileHandle, pieces: readonly Buffer[]): Promise<void> {
  let rest = pieces;
  while (rest.length > 0) {
    const { bytesWritten } = await file.writev([...rest]);
    rest = unwritten(rest, bytesWritten);
  }
}

function unwritten(pieces: readonly Buffer[], written: number): Buffer[] {
  let skip = written;
  const rest: Buffer[] = [];
  for (const piece of pieces) {
    if (skip >= piece.length) skip -= piece.length;
    else {
      rest.push(piece.subarray(skip));
      skip = 0;
    }
  }
  return rest;
}
