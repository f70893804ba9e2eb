/** Moves one entry: by renaming, or, where the kernel cannot (another mount, a directory of the image), by copying. */

import { type BigIntStats, constants } from "node:fs";
import { copyFile, type FileHandle } from "node:fs/promises";
import { posix } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import { randomName } from "../runtime/late-builtins.ts";
import { lchown, lstat, lstatBig, lutimes, mkdir, open, readlink, rename, symlink } from "../system/disk.ts";
import { errnoOf, fileError, naming } from "../system/errno.ts";
import type { System } from "../system/system.ts";
import type { User } from "../system/users.ts";
import { inside, namesIn, openHeld, removeHeld, withEntry } from "./held.ts";
import { makeDirectories } from "./tree.ts";

export interface Move {
  readonly source: string;
  readonly destination: string;
  /** The owner of the destination's parents that have to be made. */
  readonly owner: Pick<User, "uid" | "gid">;
}

const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
const MAKE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

type Metadata = Pick<System, "getAttributes" | "setAttributes">;

/**
 * Moves one entry, and replaces what is at the destination.
 * @throws {AppError} not_found, bad_request, failed_precondition or forbidden; the signal's reason: then nothing was moved
 */
export async function moveEntry(move: Move, metadata: Metadata, signal: AbortSignal): Promise<void> {
  const { source, destination, owner } = move;
  await withEntry(source, async (from) => {
    await lstat(from);
    await makeDirectories(posix.dirname(destination), owner, signal);
    await withEntry(destination, (to) =>
      moveHeld(from, to, { metadata, signal }).catch((error: unknown) => {
        throw moveError(error, source, destination);
      }),
    ).catch(naming(destination));
  }).catch(naming(source));
}

interface Copying {
  readonly metadata: Metadata;
  readonly signal: AbortSignal;
  /** The identity of the directory that the copy makes first: it is not itself copied. */
  readonly made?: string;
}

async function moveHeld(from: string, to: string, copying: Copying): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (errnoOf(error) !== "EXDEV") throw error;
    await copyOver(from, to, copying);
  }
}

// Complete beside the destination first: a copy that fails half way changes nothing.
async function copyOver(source: string, destination: string, copying: Copying): Promise<void> {
  // A name of its own: with an ending, a name that is as long as names may be would be too long.
  const beside = posix.join(posix.dirname(destination), `.svc-${randomName(8)}`);
  try {
    await copy(source, beside, copying);
    await rename(beside, destination);
  } catch (error) {
    await removeHeld(beside);
    throw error;
  }
  // To its end, also when the client has left: two copies would be a surprise.
  await removeHeld(source);
}

/** Copies entries through open descriptors, because a user may replace each name by a link during the copy. */
async function copy(source: string, destination: string, copying: Copying): Promise<void> {
  copying.signal.throwIfAborted();
  const stats = await lstat(source);
  if (stats.isSymbolicLink()) {
    await symlink(await readlink(source), destination);
    await lchown(destination, stats.uid, stats.gid);
    await lutimes(destination, stats.atime, stats.mtime);
  } else if (stats.isDirectory()) {
    // As the kernel refuses it within one file system: the copy would have no end.
    if (identityOf(await lstatBig(source)) === copying.made)
      throw Object.assign(new Error("the destination is below the source"), { code: "EINVAL" });
    await mkdir(destination, 0o700);
    const below = { ...copying, made: copying.made ?? identityOf(await lstatBig(destination)) };
    await fromOneToOther(
      await openHeld(source),
      () => openHeld(destination),
      async (from, to) => {
        for (const name of await namesIn(from)) await copy(inside(from, name), inside(to, name), below);
        await describeAlike(from, to);
      },
    );
  } else if (stats.isFile()) {
    await fromOneToOther(
      await open(source, READ),
      () => open(destination, MAKE, 0o600),
      async (from, to) => {
        await copyFile(`/proc/self/fd/${from.fd}`, `/proc/self/fd/${to.fd}`);
        // The path names envd's process, because /proc/self of the helper is another process.
        const ofHelper = ({ fd }: FileHandle) => `/proc/${process.pid}/fd/${fd}`;
        const [attributes = {}] = await copying.metadata.getAttributes([ofHelper(from)]);
        if (Object.keys(attributes).length > 0) await copying.metadata.setAttributes(ofHelper(to), attributes);
        await describeAlike(from, to);
      },
    );
  } else {
    throw new AppError(
      "failed_precondition",
      "a device, socket or pipe cannot be moved between file systems: remove it from the moved directory first",
    );
  }
}

function identityOf({ dev, ino }: BigIntStats): string {
  return `${dev} ${ino}`;
}

async function fromOneToOther(
  from: FileHandle,
  openOther: () => Promise<FileHandle>,
  act: (from: FileHandle, to: FileHandle) => Promise<void>,
): Promise<void> {
  try {
    const to = await openOther();
    try {
      await act(from, to);
    } finally {
      await to.close();
    }
  } finally {
    await from.close();
  }
}

async function describeAlike(from: FileHandle, to: FileHandle): Promise<void> {
  const { uid, gid, mode, atime, mtime } = await from.stat();
  await to.chown(uid, gid);
  // After chown, which clears the set-uid bit.
  await to.chmod(mode & 0o7777);
  await to.utimes(atime, mtime);
}

function moveError(error: unknown, source: string, destination: string): unknown {
  const options = { cause: error };
  switch (errnoOf(error)) {
    case "ENOTEMPTY":
    case "EEXIST":
      return new AppError(
        "failed_precondition",
        `destination '${destination}' is a directory that is not empty`,
        options,
      );
    case "ENOTDIR":
      return new AppError(
        "bad_request",
        `destination '${destination}' is not a directory, but '${source}' is one`,
        options,
      );
    case "EISDIR":
      return new AppError("bad_request", `destination '${destination}' is a directory`, options);
    case "EINVAL":
      return new AppError("bad_request", `'${destination}' is inside '${source}'`, options);
    case "ENAMETOOLONG":
      return fileError(error, destination);
    case "EBUSY":
      return new AppError("failed_precondition", `'${source}' or '${destination}' is a mount point`, options);
    default:
      return fileError(error, source);
  }
}
