/** Makes, lists and removes directories. envd is root inside; a request's user only decides who owns a new directory. */

import { constants } from "node:fs";
import { mkdir, open, opendir, realpath, rmdir, stat } from "node:fs/promises";
import { posix } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import { errnoOf, fileError } from "../system/errno.ts";
import type { User } from "../system/users.ts";
import { openFollowed } from "./followed.ts";
import { removeHeld, withEntry } from "./held.ts";
import { refuseForeign } from "./place.ts";

const DIRECTORY_MODE = 0o755;
/** Most entries of one listing: more would not fit into the memory of a small sandbox. */
const MOST_ENTRIES = 100_000;
const MOST_PATH_CHARACTERS = 8_000_000;

type OwnerIds = Pick<User, "uid" | "gid">;

/** Makes a directory and its missing parents, owned by the user. @returns whether the directory itself was made */
export async function makeDirectories(path: string, owner: OwnerIds): Promise<boolean> {
  try {
    await mkdir(path, DIRECTORY_MODE);
  } catch (error) {
    const errno = errnoOf(error);
    // Another process may make the same directory at the same time.
    if (errno === "EEXIST") return false;
    if (errno !== "ENOENT" || path === "/") throw fileError(error, path);
    await makeDirectories(posix.dirname(path), owner);
    return makeDirectories(path, owner);
  }
  await give(path, owner);
  return true;
}

// Uses a descriptor, because the name may lead to another directory by the time of the call.
async function give(path: string, owner: OwnerIds): Promise<void> {
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    await refuseForeign(directory, path, "create").catch(async (error: unknown) => {
      await rmdir(path).catch(() => undefined);
      throw error;
    });
    await directory.chown(owner.uid, owner.gid);
  } finally {
    await directory.close();
  }
}

/** @throws {AppError} conflict when the directory is there already, bad_request when a file is in its place */
export async function makeNewDirectory(path: string, owner: OwnerIds): Promise<void> {
  const made = await makeDirectories(path, owner).catch((error: unknown) => {
    throw fileError(error, path);
  });
  if (made) return;
  const stats = await stat(path).catch(() => undefined);
  if (stats?.isDirectory() === true) throw new AppError("conflict", `directory already exists: '${path}'`);
  throw new AppError("bad_request", `path already exists but is not a directory: '${path}'`);
}

/**
 * Paths below a directory: depth first, a directory before its entries, by name. Follows no link except the directory
 * itself, whose entries it then names under the requested path. Leaves out entries that vanish during the walk.
 * @throws {AppError} not_found, bad_request for another kind of file, failed_precondition for a cycle of links
 */
export async function listTree(path: string, depth: number): Promise<string[]> {
  const root = await readableDirectory(path);
  const listing: Listing = { paths: [], characters: 0 };
  await walk({ directory: root, shown: path }, Math.max(1, depth), listing);
  return listing.paths;
}

/**
 * The real path of a directory. A user's link may lead only to a directory that this user may read.
 * @throws {AppError} not_found, bad_request for another kind of file, failed_precondition for a cycle of links, forbidden
 */
export async function readableDirectory(path: string): Promise<string> {
  const root = await realpath(path).catch((error: unknown) => {
    throw fileError(error, path);
  });
  const stats = await stat(root).catch((error: unknown) => {
    throw fileError(error, path);
  });
  if (!stats.isDirectory()) throw new AppError("bad_request", `path is not a directory: '${path}'`);
  if (root === path) return root;
  const directory = await openFollowed(path, constants.O_RDONLY | constants.O_DIRECTORY).catch((error: unknown) => {
    throw fileError(error, path);
  });
  try {
    await refuseForeign(directory, path, "read");
  } finally {
    await directory.close();
  }
  return root;
}

interface Listing {
  readonly paths: string[];
  characters: number;
}

interface Place {
  readonly directory: string;
  /** Its path in the listing. */
  readonly shown: string;
}

/** @throws {AppError} resource_exhausted when the listing becomes too large */
function add(path: string, listing: Listing): void {
  listing.paths.push(path);
  listing.characters += path.length;
  if (listing.paths.length > MOST_ENTRIES || listing.characters > MOST_PATH_CHARACTERS) throw tooMany();
}

function tooMany(): AppError {
  return new AppError("resource_exhausted", "there are too many entries for one listing: list less deep");
}

async function walk({ directory, shown }: Place, depth: number, listing: Listing): Promise<void> {
  const entries: { name: string; descend: boolean }[] = [];
  try {
    for await (const entry of await opendir(directory, { bufferSize: 256 })) {
      entries.push({ name: entry.name, descend: entry.isDirectory() });
      if (listing.paths.length + entries.length > MOST_ENTRIES) throw tooMany();
    }
  } catch (error) {
    if (errnoOf(error) !== "ENOENT" && errnoOf(error) !== "ENOTDIR") throw fileError(error, shown);
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const { name, descend } of entries) {
    const path = posix.join(shown, name);
    add(path, listing);
    if (descend && depth > 1) await walk({ directory: posix.join(directory, name), shown: path }, depth - 1, listing);
  }
}

/** Removes what is at a path, with everything below it; succeeds when nothing is there. */
export async function removeTree(path: string): Promise<void> {
  await withEntry(path, removeHeld).catch((error: unknown) => {
    const errno = errnoOf(error);
    if (errno === "ENOTDIR" || errno === "ENOENT") return;
    throw removeError(error, path);
  });
}

function removeError(error: unknown, path: string): unknown {
  const errno = errnoOf(error);
  if (errno === "EBUSY")
    return new AppError("failed_precondition", `path '${path}' is in use as a mount point`, { cause: error });
  return fileError(error, path);
}
