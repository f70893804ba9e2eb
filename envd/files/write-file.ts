/** Writes bytes to a file in place, as they arrive: no temporary file, never the whole body in memory. */

import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { posix } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import type { Pieces } from "../bodies/arriving.ts";
import { openFollowed } from "../filesystem/followed.ts";
import { endOf, refuseForeign } from "../filesystem/place.ts";
import { makeDirectories } from "../filesystem/tree.ts";
import { open, readlink, unlink } from "../system/disk.ts";
import { errnoOf, fileError } from "../system/errno.ts";
import type { Attributes, System } from "../system/system.ts";
import { SystemError } from "../system/system.ts";
import type { User } from "../system/users.ts";
import { mayReplace, type Version, versionOf } from "./byte-range.ts";

export interface FileTarget {
  /** Absolute. */
  readonly path: string;
  readonly owner: Pick<User, "uid" | "gid">;
  /** Replaces all metadata the file has. */
  readonly metadata: Attributes;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
  /** The file is changed only while it is there and has one of these entity tags. */
  readonly ifMatch?: string | undefined;
}

/** Most pieces that the kernel takes at once. */
const MOST_PIECES = 1024;

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NONBLOCK;
// Without O_TRUNC: the file is emptied only after its place has been checked.
const EXISTING = constants.O_WRONLY | constants.O_NONBLOCK;

/**
 * Makes missing parents, then the file (0644) or empties the one that is there (keeping its mode), owned by the user.
 * @throws {AppError} bad_request for a directory or device, no_space; the bytes written by then stay;
 * precondition_failed: nothing was changed. A program that writes between the check and the first byte is not noticed.
 */
export async function writeFileFrom(
  source: AsyncIterable<Pieces>,
  { path, owner, metadata, signal, ifMatch }: FileTarget,
  system: Pick<System, "setAttributes">,
): Promise<Version> {
  try {
    const { file, created } = ifMatch === undefined ? await openTarget(path, owner, signal) : await openPresent(path);
    try {
      const before = await file.stat({ bigint: true });
      if (!before.isFile()) throw new AppError("bad_request", `path '${path}' is not a regular file`);
      await refuse(file, path, created);
      if (ifMatch !== undefined && !mayReplace(ifMatch, versionOf(before))) throw changedMeanwhile(path);
      if (!created) await file.truncate();
      await file.chown(owner.uid, owner.gid);
      if (!created || Object.keys(metadata).length > 0) await replaceMetadata(file, metadata, system);
      await copyInto(file, source);
      return versionOf(await file.stat({ bigint: true }));
    } finally {
      await file.close();
    }
  } catch (error) {
    throw fileError(error, path);
  }
}

function changedMeanwhile(path: string): AppError {
  return new AppError("precondition_failed", `path '${path}' is not as it was: If-Match names another version of it`);
}

/** The file that is there: a condition on its version makes none. */
async function openPresent(path: string): Promise<OpenedTarget> {
  try {
    return { file: await openFollowed(path, EXISTING), created: false };
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === "ENOENT" || errno === "ENOTDIR") throw changedMeanwhile(path);
    throw error;
  }
}

interface OpenedTarget {
  readonly file: FileHandle;
  readonly created: boolean;
}

async function openTarget(path: string, owner: FileTarget["owner"], signal: AbortSignal): Promise<OpenedTarget> {
  try {
    return await openOrMake(path);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
    await makeDirectories(posix.dirname(path), owner, signal);
    return openOrMake(path);
  }
}

async function openOrMake(path: string): Promise<OpenedTarget> {
  try {
    return { file: await open(path, CREATE, 0o644), created: true };
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
    return openExisting(path);
  }
}

// Non-blocking, so that a pipe without a reader is refused instead of waited for. Without O_CREAT: in a sticky directory
// the kernel refuses that to all but the file's owner, also to root (fs.protected_regular).
async function openExisting(path: string): Promise<OpenedTarget> {
  try {
    return { file: await openFollowed(path, EXISTING), created: false };
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
    // A link whose target does not exist yet.
    return { file: await open(await endOf(path), CREATE, 0o644), created: true };
  }
}

/** Removes a file that was created in a place that the user may not write to. */
async function refuse(file: FileHandle, path: string, created: boolean): Promise<void> {
  const real = await readlink(`/proc/self/fd/${file.fd}`);
  try {
    await refuseForeign(file, path, created ? "create" : "change");
  } catch (error) {
    if (created && (await file.stat()).size === 0) await unlink(real).catch(() => undefined);
    throw error;
  }
}

// Through the descriptor, so that it is this very file, also when its name changes.
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

async function copyInto(file: FileHandle, source: AsyncIterable<Pieces>): Promise<void> {
  // One handful is written while the next arrives.
  let writing: Promise<void> = Promise.resolve();
  try {
    for await (const pieces of source) {
      await writing;
      writing = writeAll(file, pieces);
      // Awaited in the next round; a failure before that must not be an unhandled one.
      writing.catch(() => undefined);
    }
  } finally {
    await writing;
  }
}

// One call where possible: each call is an event for watchers.
async function writeAll(file: FileHandle, pieces: Pieces): Promise<void> {
  let rest: Pieces = pieces;
  while (rest.length > 0) {
    const { bytesWritten } = await file.writev(rest.slice(0, MOST_PIECES));
    rest = unwritten(rest, bytesWritten);
  }
}

function unwritten(pieces: Pieces, written: number): Buffer[] {
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
