/** Makes, lists and removes directories. envd is root inside; a request's user only decides who owns a new directory. */

import { constants } from "node:fs";
import { posix } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import { childrenOf, lstat, mkdir, open, realpath, rmdir, stat } from "../system/disk.ts";
import { errnoOf, fileError, naming } from "../system/errno.ts";
import type { User } from "../system/users.ts";
import { openFollowed } from "./followed.ts";
import { removeHeld, withEntry } from "./held.ts";
import { refuseForeign } from "./place.ts";

const DIRECTORY_MODE = 0o755;
/** Most entries of one listing: more would not fit into the memory of a small sandbox. */
const MOST_ENTRIES = 100_000;
const MOST_PATH_CHARACTERS = 8_000_000;
const TOO_MANY =
  `there are more than ${MOST_ENTRIES} entries, or ${MOST_PATH_CHARACTERS} letters of paths, for one listing: list less deep; ` +
  "a single directory as large as that is listed by a command, such as find -maxdepth 1";
/** How often a removal begins again in directories into which programs write. */
const REMOVAL_ROUNDS = 64;

type OwnerIds = Pick<User, "uid" | "gid">;

/**
 * Makes a directory and its missing parents, owned by the user.
 * @returns whether the directory itself was made; false also where something else has its name
 * @throws {AppError} bad_request where a part of the path is a file, or a link to nothing; not_found where nothing can be
 * made; the signal's reason
 */
export async function makeDirectories(path: string, owner: OwnerIds, signal?: AbortSignal): Promise<boolean> {
  const missing: string[] = [];
  for (let at = path; ; at = posix.dirname(at)) {
    signal?.throwIfAborted();
    const outcome = await makeOne(at, owner);
    if (outcome !== "no parent") {
      if (missing.length === 0) return outcome === "made";
      break;
    }
    if (at === "/") throw notMakeable(at);
    missing.push(at);
  }
  let outcome: Outcome = "there";
  for (const next of missing.toReversed()) {
    signal?.throwIfAborted();
    outcome = await makeOne(next, owner);
    if (outcome === "no parent") throw await noWayTo(next);
  }
  return outcome === "made";
}

/** `there`: also when another process makes the same directory at the same time. */
type Outcome = "made" | "there" | "no parent";

async function makeOne(path: string, owner: OwnerIds): Promise<Outcome> {
  try {
    await mkdir(path, DIRECTORY_MODE);
  } catch (error) {
    switch (errnoOf(error)) {
      case "EEXIST":
        return "there";
      case "ENOENT":
        return "no parent";
      default:
        throw fileError(error, path);
    }
  }
  await give(path, owner);
  return "made";
}

/** Why a directory cannot be made though its parent has a name. */
async function noWayTo(path: string): Promise<AppError> {
  const parent = posix.dirname(path);
  const stats = await lstat(parent).catch(() => undefined);
  if (stats?.isSymbolicLink() !== true) return notMakeable(path);
  return new AppError("bad_request", `path '${path}' cannot be made: '${parent}' is a link to nothing`);
}

function notMakeable(path: string): AppError {
  const parent = posix.dirname(path);
  return new AppError(
    "not_found",
    `path '${path}' cannot be made: '${parent}' takes no new entries, or was just removed`,
  );
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
export async function makeNewDirectory(path: string, owner: OwnerIds, signal: AbortSignal): Promise<void> {
  if (await makeDirectories(path, owner, signal).catch(naming(path))) return;
  const stats = await stat(path).catch(() => undefined);
  if (stats?.isDirectory() === true) throw new AppError("conflict", `directory already exists: '${path}'`);
  throw new AppError("bad_request", `path already exists but is not a directory: '${path}'`);
}

/**
 * Paths below a directory: depth first, a directory before its entries, by name. Follows no link except the directory
 * itself, whose entries it then names under the requested path. Leaves out entries that vanish during the walk, and those of
 * nested directories that the kernel shows to nobody.
 * @throws {AppError} not_found, bad_request for another kind of file, failed_precondition for a cycle of links
 */
export async function listTree(path: string, depth: number, signal: AbortSignal): Promise<string[]> {
  const root = await readableDirectory(path);
  const listing: Listing = { paths: [], characters: 0, signal };
  await walk({ directory: root, shown: path }, Math.max(1, depth), listing);
  return listing.paths;
}

/**
 * The real path of a directory. A user's link may lead only to a directory that this user may read.
 * @throws {AppError} not_found, bad_request for another kind of file, failed_precondition for a cycle of links, forbidden
 */
export async function readableDirectory(path: string): Promise<string> {
  const root = await realpath(path).catch(naming(path));
  const stats = await stat(root).catch(naming(path));
  if (!stats.isDirectory()) throw new AppError("bad_request", `path is not a directory: '${path}'`);
  if (root === path) return root;
  const directory = await openFollowed(path, constants.O_RDONLY | constants.O_DIRECTORY).catch(naming(path));
  try {
    await refuseForeign(directory, path, "read");
  } finally {
    await directory.close();
  }
  return root;
}

interface Listing {
  readonly paths: string[];
  readonly signal: AbortSignal;
  characters: number;
}

const GONE = new Set(["ENOENT", "ENOTDIR"]);
/** Answers of the kernel for directories that it hides also from root, in /proc and of FUSE; as with find, the others are listed. */
const UNREADABLE = new Set(["EACCES", "EPERM", "ESRCH", "ENOTCONN"]);

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
  return new AppError("resource_exhausted", TOO_MANY);
}

async function walk({ directory, shown }: Place, depth: number, listing: Listing): Promise<void> {
  const entries: { name: string; descend: boolean }[] = [];
  try {
    for await (const { name, isDirectory } of childrenOf(directory)) {
      listing.signal.throwIfAborted();
      entries.push({ name, descend: isDirectory });
      if (listing.paths.length + entries.length > MOST_ENTRIES) throw tooMany();
    }
  } catch (error) {
    const errno = errnoOf(error) ?? "";
    const isLeftOut = listing.paths.length > 0 && UNREADABLE.has(errno);
    if (!GONE.has(errno) && !isLeftOut) throw fileError(error, shown);
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const { name, descend } of entries) {
    const path = posix.join(shown, name);
    add(path, listing);
    if (descend && depth > 1) await walk({ directory: posix.join(directory, name), shown: path }, depth - 1, listing);
  }
}

/** Removes what is at a path, with everything below it; succeeds when nothing is there. */
export async function removeTree(path: string, signal: AbortSignal): Promise<void> {
  try {
    await withEntry(path, (entry) =>
      removeHeld(entry, signal, REMOVAL_ROUNDS).catch((error: unknown) => {
        throw removeError(error, path);
      }),
    );
  } catch (error) {
    // Below a file, or below nothing, there is nothing.
    const errno = errnoOf(error);
    if (errno !== "ENOTDIR" && errno !== "ENOENT") throw fileError(error, path);
  }
}

function removeError(error: unknown, path: string): unknown {
  const options = { cause: error };
  switch (errnoOf(error)) {
    case "EBUSY":
      return new AppError("failed_precondition", `path '${path}' is in use as a mount point`, options);
    case "ENOTEMPTY":
    case "EEXIST":
      return new AppError(
        "failed_precondition",
        `path '${path}' is not empty: programs write into it faster than it is emptied; end them first`,
        options,
      );
    default:
      return fileError(error, path);
  }
}
