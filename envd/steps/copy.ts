/**
 * COPY: moves unpacked files to their place. A directory is merged into what is there, also through a link to a
 * directory; anything else that is there is replaced and never opened, so that no link is written through, no pipe is waited
 * for and no running program is in the way.
 */

import {
  type BigIntStats,
  chmodSync,
  copyFileSync,
  lchownSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { User } from "../system/users.ts";
import { isDirectory, makeDirectory } from "./directories.ts";

export interface CopyOrder {
  /** Where the archive was unpacked. Removed afterwards. */
  readonly files: string;
  /** Source below `files`, up to its first wildcard. */
  readonly from: string;
  readonly wild: boolean;
  /** Absolute; a slash at its end says that it is a directory. */
  readonly destination: string;
  readonly owner: User;
  /** Octal; empty: as in the archive. */
  readonly mode: string;
}

/** @throws Error, for the log of the build */
export function copyInto({ files, from, wild, destination, owner, mode }: CopyOrder): void {
  const source = join(files, from);
  const found = lstatSync(source, { throwIfNoEntry: false });
  if (found === undefined) throw new Error("no files match the source");
  const entries = wild && found.isDirectory() ? readdirSync(source) : [];
  if (wild && found.isDirectory() && entries.length === 0) throw new Error("no files match the source");
  const single = singleFile(source, wild ? entries : undefined);
  // Before anything is where others reach it.
  claim(files, owner, { mode: mode === "" ? undefined : Number.parseInt(mode, 8), within: single ?? source });
  if (single === undefined) {
    makeDirectory(destination, owner);
    for (const name of readdirSync(source)) place(join(source, name), join(destination, name));
  } else {
    const into = destination.endsWith("/") || isDirectory(destination);
    makeDirectory(into ? destination : dirname(destination), owner);
    place(single, into ? join(destination, basename(single)) : destination);
  }
}

/** The one file that the source is, or that its wildcard matched; undefined for directories. */
function singleFile(source: string, entries: readonly string[] | undefined): string | undefined {
  const only = entries === undefined ? source : entries.length === 1 ? join(source, entries[0] ?? "") : undefined;
  return only === undefined || lstatSync(only).isDirectory() ? undefined : only;
}

/** Gives everything the owner, and what is `within` the mode. A change of owner takes setuid away, so modes come second. */
function claim(
  path: string,
  owner: User,
  chosen: { readonly mode: number | undefined; readonly within: string },
): void {
  const found = lstatSync(path);
  lchownSync(path, owner.uid, owner.gid);
  if (found.isDirectory()) for (const name of readdirSync(path)) claim(join(path, name), owner, chosen);
  if (found.isSymbolicLink()) return;
  const isWithin = path === chosen.within || path.startsWith(`${chosen.within}/`);
  chmodSync(path, isWithin && chosen.mode !== undefined ? chosen.mode : found.mode & 0o7777);
}

function place(from: string, to: string): void {
  const there = lstatSync(to, { throwIfNoEntry: false });
  if (lstatSync(from).isDirectory()) {
    if (there !== undefined && isDirectory(to)) {
      // A directory that is there keeps its owner and mode.
      for (const name of readdirSync(from)) place(join(from, name), join(to, name));
      return;
    }
    if (there !== undefined) rmSync(to);
  } else if (there?.isDirectory() === true) {
    throw new Error(`'${to}' is a directory, and the source has a file of that name`);
  }
  move(from, to);
}

function move(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    // A mount of the platform, such as /etc/hosts: it hides what an image has there in any case.
    if (code === "EBUSY") return;
    if (code !== "EXDEV") throw error;
    transfer(from, to);
  }
}

/** To another file system, such as a tmpfs. Made under another name first, so that a link there is never followed. */
function transfer(from: string, to: string): void {
  const found = lstatSync(from, { bigint: true });
  if (found.isDirectory()) {
    mkdirSync(to);
    for (const name of readdirSync(from)) transfer(join(from, name), join(to, name));
    dress(to, found);
    return;
  }
  const beside = join(dirname(to), `.svc-${process.pid}`);
  rmSync(beside, { force: true });
  if (found.isSymbolicLink()) symlinkSync(readlinkSync(from), beside);
  else copyFileSync(from, beside);
  dress(beside, found);
  renameSync(beside, to);
}

function dress(path: string, found: BigIntStats): void {
  const [atime, mtime] = [Number(found.atimeMs) / 1_000, Number(found.mtimeMs) / 1_000];
  lchownSync(path, Number(found.uid), Number(found.gid));
  if (found.isSymbolicLink()) return lutimesSync(path, atime, mtime);
  chmodSync(path, Number(found.mode) & 0o7777);
  utimesSync(path, atime, mtime);
}
