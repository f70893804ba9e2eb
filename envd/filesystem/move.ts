/** Moves one entry: by renaming, or, where the kernel cannot (another mount, a directory of the image), by copying. */

import {
  chmod,
  chown,
  copyFile,
  lchown,
  lstat,
  lutimes,
  mkdir,
  readdir,
  readlink,
  rename,
  rm,
  symlink,
} from "node:fs/promises";
import { posix } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import { randomName } from "../runtime/late-builtins.ts";
import { errnoOf, fileError } from "../system/errno.ts";
import type { System } from "../system/system.ts";
import type { User } from "../system/users.ts";
import { makeDirectories } from "./tree.ts";

export interface Move {
  readonly source: string;
  readonly destination: string;
  /** Owns the parents of the destination that have to be made. */
  readonly owner: Pick<User, "uid" | "gid">;
}

type Metadata = Pick<System, "getAttributes" | "setAttributes">;

/** Over what is there. @throws {AppError} not_found, bad_request or failed_precondition; then nothing was moved */
export async function moveEntry({ source, destination, owner }: Move, metadata: Metadata): Promise<void> {
  try {
    await lstat(source);
    await makeDirectories(posix.dirname(destination), owner);
    await rename(source, destination);
  } catch (error) {
    if (errnoOf(error) !== "EXDEV") throw moveError(error, source, destination);
    await copyOver(source, destination, metadata).catch((failure: unknown) => {
      throw moveError(failure, source, destination);
    });
  }
}

// Complete beside the destination first: a copy that fails half way changes nothing.
async function copyOver(source: string, destination: string, metadata: Metadata): Promise<void> {
  const beside = `${destination}.svc-${randomName(6)}`;
  try {
    await copy(source, beside, metadata);
    await rename(beside, destination);
  } catch (error) {
    await rm(beside, { recursive: true, force: true });
    throw error;
  }
  await rm(source, { recursive: true, force: true });
}

async function copy(source: string, destination: string, metadata: Metadata): Promise<void> {
  const stats = await lstat(source);
  if (stats.isSymbolicLink()) {
    await symlink(await readlink(source), destination);
  } else if (stats.isDirectory()) {
    await mkdir(destination, 0o700);
    for (const name of await readdir(source))
      await copy(posix.join(source, name), posix.join(destination, name), metadata);
  } else if (stats.isFile()) {
    await copyFile(source, destination);
    const [attributes = {}] = await metadata.getAttributes([source]);
    if (Object.keys(attributes).length > 0) await metadata.setAttributes(destination, attributes);
  } else {
    throw new AppError(
      "failed_precondition",
      `'${source}' is a device, socket or pipe and cannot be moved between file systems`,
    );
  }
  if (stats.isSymbolicLink()) {
    await lchown(destination, stats.uid, stats.gid);
  } else {
    await chown(destination, stats.uid, stats.gid);
    // After chown, which clears the set-uid bit.
    await chmod(destination, stats.mode & 0o7777);
  }
  await lutimes(destination, stats.atime, stats.mtime);
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
