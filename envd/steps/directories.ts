/** Makes directories for a build, through links as the kernel would go. */

import { lchownSync, lstatSync, mkdirSync, readlinkSync, type Stats, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { User } from "../system/users.ts";

type Owner = Pick<User, "uid" | "gid">;

/** As many links as the kernel follows in one path. */
const MOST_LINKS = 40;

/**
 * Makes the directory and its missing parents; what is made belongs to the owner. A link to nothing leads to where it points.
 * @returns false when it was there
 * @throws Error when something that is not a directory is in its way
 */
export function makeDirectory(path: string, owner: Owner, links = 0): boolean {
  if (isDirectory(path)) return false;
  const there = foundAt(path);
  if (there?.isSymbolicLink() === true) {
    if (links >= MOST_LINKS) throw new Error(`'${path}' leads through more than ${MOST_LINKS} links`);
    return makeDirectory(resolve(dirname(path), readlinkSync(path)), owner, links + 1);
  }
  if (there !== undefined) throw new Error(`'${path}' is not a directory`);
  makeDirectory(dirname(path), owner, links);
  mkdirSync(path);
  lchownSync(path, owner.uid, owner.gid);
  return true;
}

/** Also for a link to a directory. A loop of links is none. */
export function isDirectory(path: string): boolean {
  return unlessInTheWay(() => statSync(path, { throwIfNoEntry: false }))?.isDirectory() === true;
}

/** What is at the path itself, a link too; undefined also where a file is in the place of one of its directories. */
function foundAt(path: string): Stats | undefined {
  return unlessInTheWay(() => lstatSync(path, { throwIfNoEntry: false }));
}

function unlessInTheWay(look: () => Stats | undefined): Stats | undefined {
  try {
    return look();
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ELOOP" || error.code === "ENOTDIR"))
      return undefined;
    throw error;
  }
}
