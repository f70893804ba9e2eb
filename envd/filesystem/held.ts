/**
 * Entries by an open directory instead of by a path: `/proc/self/fd/N/NAME` is in that very directory, also when a user
 * changes the names on the way, and a call that does not follow NAME itself is led nowhere else.
 */

import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { posix } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import { childrenOf, lstat, open, rmdir, unlink } from "../system/disk.ts";
import { errnoOf } from "../system/errno.ts";
import { openFollowed } from "./followed.ts";
import { refuseForeign } from "./place.ts";

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NONBLOCK;

/**
 * Calls `act` with a path of the entry that stays in the same directory while a user renames or exchanges names.
 * @throws {AppError} forbidden where a user's link leads to a directory that is not that user's; failed_precondition for `/`,
 * which is an entry of nothing
 */
export async function withEntry<T>(path: string, act: (entry: string) => Promise<T>): Promise<T> {
  if (path === "/")
    throw new AppError(
      "failed_precondition",
      "path '/' is the root directory: it cannot be moved, replaced or removed",
    );
  const parent = posix.dirname(path);
  const directory = await openFollowed(parent, DIRECTORY);
  try {
    await refuseForeign(directory, parent, "change");
    return await act(inside(directory, posix.basename(path)));
  } finally {
    await directory.close();
  }
}

/** Opens the directory itself; fails when a link has its name. */
export function openHeld(directory: string): Promise<FileHandle> {
  return open(directory, DIRECTORY | constants.O_NOFOLLOW);
}

export function inside(directory: FileHandle, name: string): string {
  return posix.join(`/proc/self/fd/${directory.fd}`, name);
}

export async function namesIn(directory: FileHandle): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of childrenOf(`/proc/self/fd/${directory.fd}`)) names.push(name);
  return names;
}

/** How long directories are emptied again: a program that writes faster than they are emptied leaves more each time. */
const AGAIN_MS = 2_000;

/** One removal: until when, and how often yet, a directory is emptied again into which programs write meanwhile. */
interface Removal {
  readonly signal: AbortSignal | undefined;
  roundsLeft: number;
  /** Why a directory was emptied again for the first time, and until when this goes on. */
  again: { readonly error: unknown; readonly until: number } | undefined;
}

/**
 * Removes an entry with everything below it; succeeds when nothing is there.
 * @param rounds how often directories are emptied in all that are not empty once their entries are removed
 * @throws ErrnoException; ENOTEMPTY when programs put entries into a directory faster than they are removed
 */
export async function removeHeld(entry: string, signal?: AbortSignal, rounds = 0): Promise<void> {
  await removeOne(entry, { signal, roundsLeft: rounds, again: undefined });
}

async function removeOne(entry: string, removal: Removal): Promise<void> {
  for (;;) {
    removal.signal?.throwIfAborted();
    if (removal.again !== undefined && performance.now() > removal.again.until) throw removal.again.error;
    try {
      if (!(await unlinked(entry))) await removeDirectory(entry, removal);
      return;
    } catch (error) {
      const errno = errnoOf(error);
      // ENOTDIR: another program has put a file in its place.
      const isChanging = errno === "ENOTEMPTY" || errno === "EEXIST" || errno === "ENOTDIR";
      if (!isChanging || removal.roundsLeft === 0) throw error;
      removal.roundsLeft -= 1;
      removal.again ??= { error, until: performance.now() + AGAIN_MS };
    }
  }
}

/** @returns false for a directory */
async function unlinked(entry: string): Promise<boolean> {
  try {
    await unlink(entry);
    return true;
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === "ENOENT") return true;
    if (errno === "EISDIR" || (errno === "EPERM" && (await isDirectory(entry)))) return false;
    throw error;
  }
}

async function isDirectory(entry: string): Promise<boolean> {
  return lstat(entry).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

async function removeDirectory(entry: string, removal: Removal): Promise<void> {
  try {
    const directory = await openHeld(entry);
    try {
      for (const name of await namesIn(directory)) await removeOne(inside(directory, name), removal);
    } finally {
      await directory.close();
    }
    await rmdir(entry);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}
