/** The file calls of Node for paths in their written form (`file-names.ts`): they reach files of any name. */

import { type BigIntStats, type Dirent, lstatSync as lstatNow, type Stats, statSync as statNow } from "node:fs";
import * as fs from "node:fs/promises";
import { nameOf, onDisk } from "./file-names.ts";

export const open = (path: string, flags: string | number, mode?: number): Promise<fs.FileHandle> =>
  fs.open(onDisk(path), flags, mode);
export const mkdir = (path: string, mode: number): Promise<void> =>
  fs.mkdir(onDisk(path), { mode }).then(() => undefined);
export const rmdir = (path: string): Promise<void> => fs.rmdir(onDisk(path));
export const unlink = (path: string): Promise<void> => fs.unlink(onDisk(path));
export const rename = (from: string, to: string): Promise<void> => fs.rename(onDisk(from), onDisk(to));
export const symlink = (target: string, path: string): Promise<void> => fs.symlink(onDisk(target), onDisk(path));
export const stat = (path: string): Promise<Stats> => fs.stat(onDisk(path));
export const lstat = (path: string): Promise<Stats> => fs.lstat(onDisk(path));
export const lstatBig = (path: string): Promise<BigIntStats> => fs.lstat(onDisk(path), { bigint: true });
export const lstatBigNow = (path: string): BigIntStats => lstatNow(onDisk(path), { bigint: true });
/** Without a thread of Node's pool, which may not be there yet and cannot be made where there is no room for processes. */
export const isFileNow = (path: string): boolean => {
  try {
    return statNow(onDisk(path), { throwIfNoEntry: false })?.isFile() === true;
  } catch {
    return false;
  }
};
export const lchown = (path: string, uid: number, gid: number): Promise<void> => fs.lchown(onDisk(path), uid, gid);
export const lutimes = (path: string, atime: Date, mtime: Date): Promise<void> =>
  fs.lutimes(onDisk(path), atime, mtime);
export const statfsType = async (path: string): Promise<number> => (await fs.statfs(onDisk(path))).type;
export const readlink = async (path: string): Promise<string> =>
  nameOf(await fs.readlink(onDisk(path), { encoding: "buffer" }));
export const realpath = async (path: string): Promise<string> =>
  nameOf(await fs.realpath(onDisk(path), { encoding: "buffer" }));

export interface Child {
  readonly name: string;
  readonly isDirectory: boolean;
}

/** The entries of a directory, as they are read. */
export async function* childrenOf(directory: string): AsyncGenerator<Child> {
  // Names as bytes: the types of Node know only their conversions to text.
  const options = { bufferSize: 256, encoding: "buffer" as BufferEncoding };
  for await (const entry of (await fs.opendir(onDisk(directory), options)) as unknown as AsyncIterable<RawEntry>)
    yield { name: nameOf(entry.name), isDirectory: entry.isDirectory() };
}

type RawEntry = Omit<Dirent, "name"> & { readonly name: Buffer };
