/**
 * Entries by an open directory instead of by a path: `/proc/self/fd/N/NAME` is in that very directory, also when a user
 * changes the names on the way, and a call that does not follow NAME itself is led nowhere else.
 */

import { constants } from "node:fs";
import { type FileHandle, open, opendir, rmdir, unlink } from "node:fs/promises";
import { posix } from "node:path";
import { errnoOf } from "../system/errno.ts";
import { openFollowed } from "./followed.ts";
import { refuseForeign } from "./place.ts";

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NONBLOCK;

/**
 * Calls `act` with a path of the entry that stays in the same directory while a user renames or exchanges names.
 * @throws {AppError} forbidden where a user's link leads to a directory that is not that user's
 */
export async function withEntry<T>(path: string, act: (entry: string) => Promise<T>): Promise<T> {
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
  for await (const { name } of await opendir(`/proc/self/fd/${directory.fd}`, { bufferSize: 256 })) names.push(name);
  return names;
}

/** Removes an entry with everything below it; succeeds when nothing is there. */
export async function removeHeld(entry: string): Promise<void> {
  try {
    await unlink(entry);
    return;
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === "ENOENT") return;
    if (errno !== "EISDIR" && errno !== "EPERM") throw error;
  }
  const directory = await openHeld(entry);
  try {
    for (const name of await namesIn(directory)) await removeHeld(inside(directory, name));
  } finally {
    await directory.close();
  }
  await rmdir(entry).catch((error: unknown) => {
    if (errnoOf(error) !== "ENOENT") throw error;
  });
}
