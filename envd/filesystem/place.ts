/**
 * Finds where an open file really is. envd is root and works for users: a link that a user has planted, or a directory
 * that a user has exchanged for a link, must not lead envd to files that this user could not reach. envd checks the open
 * file, which no later exchange of names changes.
 */

import type { FileHandle } from "node:fs/promises";
import { posix } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import { lstat, readlink, stat } from "../system/disk.ts";

const ROOT = 0;
/** Most links of one path: as many as the kernel follows. */
const MOST_LINKS = 40;

/** The access that the owner of the links must be allowed. */
export type FileAccess = "change" | "create" | "read";

/**
 * Root's own links may lead anywhere. Links of another user may lead to a file that this user owns; for `create` the user
 * must own its directory, and `read` also allows files that everybody may read.
 * @param path absolute and normal, by which the file was opened
 * @throws {AppError} forbidden
 */
export async function refuseForeign(file: FileHandle, path: string, access: FileAccess): Promise<void> {
  const real = await readlink(`/proc/self/fd/${file.fd}`);
  if (real === path || real === `${path} (deleted)`) return;
  const followed = await follow(path);
  const stats = access === "create" ? await stat(posix.dirname(real)) : await file.stat();
  const asOwner =
    followed.owner === ROOT || followed.owner === stats.uid || (access === "read" && (stats.mode & 0o004) !== 0);
  if (followed.end !== real || !asOwner)
    throw new AppError("forbidden", `path '${path}': permission denied: a link leads to what its owner may not reach`);
}

/** Where the links of a path lead, whether or not something is there. @throws ErrnoException where a part on the way is missing */
export async function endOf(path: string): Promise<string> {
  return (await follow(path)).end;
}

interface FollowedPath {
  /** The path to which the links currently lead. */
  readonly end: string;
  /** Owner of the links: root, or the one other user who owns links; -1 for links of several users. */
  readonly owner: number;
}

async function follow(path: string): Promise<FollowedPath> {
  const left = path.split("/").filter(Boolean);
  let end = "/";
  let owner = ROOT;
  let links = 0;
  for (let name = left.shift(); name !== undefined; name = left.shift()) {
    if (name === ".") continue;
    if (name === "..") {
      end = posix.dirname(end);
      continue;
    }
    const next = posix.join(end, name);
    const stats = await lstat(next).catch((error: unknown) => (left.length === 0 ? undefined : Promise.reject(error)));
    if (stats?.isSymbolicLink() !== true) {
      end = next;
      continue;
    }
    links += 1;
    if (links > MOST_LINKS)
      throw new AppError(
        "failed_precondition",
        `path '${path}' has more than ${MOST_LINKS} symbolic links, or a cycle of them`,
      );
    if (stats.uid !== ROOT) owner = owner === ROOT || owner === stats.uid ? stats.uid : -1;
    const target = await readlink(next);
    if (posix.isAbsolute(target)) end = "/";
    left.unshift(...target.split("/").filter(Boolean));
  }
  return { end, owner };
}
