/** Moves one entry: by renaming, or, where the kernel cannot (another mount, a directory of the image), by copying. */

import { constants } from "node:fs";
import {
  copyFile,
  type FileHandle,
  lchown,
  lstat,
  lutimes,
  mkdir,
  open,
  readlink,
  rename,
  symlink,
} from "node:fs/promises";
import { posix } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import { randomName } from "../runtime/late-builtins.ts";
import { errnoOf, fileError } from "../system/errno.ts";
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
 * @throws {AppError} not_found, bad_request, failed_precondition or forbidden; then nothing was moved
 */
export async function moveEntry({ source, destination, owner }: Move, metadata: Metadata): Promise<void> {
  try {
    await withEntry(source, async (from) => {
      await lstat(from);
      await makeDirectories(posix.dirname(destination), owner);
      await withEntry(destination, (to) => moveHeld(from, to, metadata));
    });
  } catch (error) {
    throw moveError(error, source, destination);
  }
}

async function moveHeld(from: string, to: string, metadata: Metadata): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (errnoOf(error) !== "EXDEV") throw error;
    await copyOver(from, to, metadata);
  }
}

// Complete beside the destination first: a copy that fails half way changes nothing.
async function copyOver(source: string, destination: string, metadata: Metadata): Promise<void> {
  const beside = `${destination}.svc-${randomName(6)}`;
  try {
    await copy(source, beside, metadata);
    await rename(beside, destination);
  } catch (error) {
    await removeHeld(beside);
    throw error;
  }
  await removeHeld(source);
}

/** Copies entries through open descriptors, because a user may replace each name by a link during the copy. */
async function copy(source: string, destination: string, metadata: Metadata): Promise<void> {
  const stats = await lstat(source);
  if (stats.isSymbolicLink()) {
    await symlink(await readlink(source), destination);
    await lchown(destination, stats.uid, stats.gid);
    await lutimes(destination, stats.atime, stats.mtime);
  } else if (stats.isDirectory()) {
    await mkdir(destination, 0o700);
    await fromOneToOther(
      await openHeld(source),
      () => openHeld(destination),
      async (from, to) => {
        for (const name of await namesIn(from)) await copy(inside(from, name), inside(to, name), metadata);
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
        const [attributes = {}] = await metadata.getAttributes([ofHelper(from)]);
        if (Object.keys(attributes).length > 0) await metadata.setAttributes(ofHelper(to), attributes);
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
    case "EISDIR":
      return new AppError("bad_request", `destination '${destination}' is a directory`, options);
    case "EINVAL":
      return new AppError("bad_request", `'${destination}' is inside '${source}'`, options);
    case "EBUSY":
      return new AppError("failed_precondition", `'${source}' or '${destination}' is a mount point`, options);
    default:
      return fileError(error, source);
  }
}
