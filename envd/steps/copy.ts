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
import { modeAfter } from "../../shared/dockerfile/file-mode.ts";
import type { User } from "../system/users.ts";
import { isDirectory, makeDirectory } from "./directories.ts";

export interface CopyOrder {
  /** Where the archive was unpacked. Removed afterwards. */
  readonly files: string;
  /** Source below `files`, up to its first wildcard. */
  readonly from: string;
  /** The whole source; undefined where it has no wildcard. */
  readonly pattern: string | undefined;
  /** Absolute; a slash at its end says that it is a directory. */
  readonly destination: string;
  readonly owner: User;
  /** In octal or symbolic; empty: as in the archive. */
  readonly mode: string;
}

/** @throws Error, for the log of the build */
export function copyInto({ files, from, pattern, destination, owner, mode }: CopyOrder): void {
  const { source, single } = sourceOf(files, from, pattern);
  // Before anything is where others reach it.
  claim(files, owner, { mode, within: single ?? source });
  if (single === undefined) {
    makeDirectory(destination, owner);
    for (const name of readdirSync(source)) place(join(source, name), join(destination, name));
  } else {
    const into = destination.endsWith("/") || isDirectory(destination);
    makeDirectory(into ? destination : dirname(destination), owner);
    place(single, into ? join(destination, basename(single)) : destination);
  }
}

/** Where the source is, and the one file that it names, or that its wildcard matched; `single` is undefined for directories. */
function sourceOf(
  files: string,
  from: string,
  pattern: string | undefined,
): { readonly source: string; readonly single: string | undefined } {
  const named = pattern === undefined ? undefined : nameOf(files, from, pattern);
  const source = join(files, named ?? from);
  if (lstatSync(source, { throwIfNoEntry: false }) === undefined) throw new Error("no files match the source");
  if (pattern === undefined || named !== undefined) return { source, single: fileAt(source) };
  const entries = readdirSync(source);
  if (entries.length === 0) throw new Error("no files match the source");
  return { source, single: entries.length === 1 ? fileAt(join(source, entries[0] ?? "")) : undefined };
}

/** The pattern, where it is a name: names may have the letters of wildcards, and then nothing else was sent. */
function nameOf(files: string, from: string, pattern: string): string | undefined {
  if (lstatSync(join(files, pattern), { throwIfNoEntry: false }) === undefined) return undefined;
  return readdirSync(join(files, from)).length === 1 ? pattern : undefined;
}

function fileAt(path: string): string | undefined {
  return lstatSync(path).isDirectory() ? undefined : path;
}

/** Gives everything the owner, and what is `within` the mode. A change of owner takes setuid away, so modes come second. */
function claim(path: string, owner: User, chosen: { readonly mode: string; readonly within: string }): void {
  const found = lstatSync(path);
  lchownSync(path, owner.uid, owner.gid);
  if (found.isDirectory()) for (const name of readdirSync(path)) claim(join(path, name), owner, chosen);
  if (found.isSymbolicLink()) return;
  const isWithin = path === chosen.within || path.startsWith(`${chosen.within}/`);
  const given = found.mode & 0o7777;
  chmodSync(path, isWithin && chosen.mode !== "" ? modeAfter(chosen.mode, given, found.isDirectory()) : given);
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
