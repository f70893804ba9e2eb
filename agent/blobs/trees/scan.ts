/** Reads which files, directories and links are below a root, and notices whether they have changed since. */

import type { BigIntStats } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { BlobError } from "../content/blob-error.ts";
import type { Extent, FindExtents } from "./extents.ts";

export interface ScannedFile {
  readonly path: string;
  readonly type: "file";
  readonly mode: number;
  readonly size: number;
  readonly data: readonly Extent[];
  /** Changes with every write. */
  readonly state: string;
}

export type Scanned =
  | ScannedFile
  | { readonly path: string; readonly type: "directory"; readonly mode: number }
  | { readonly path: string; readonly type: "link"; readonly target: string };

/** Without setuid and the like: a file from elsewhere never gets rights of its owner here. */
const MODE = 0o777n;
const BLOCK = 512n;

/**
 * All entries by path, the root first, which may be a file. Paths are those below the root; the root itself is ``.
 * @throws {BlobError} changed for what cannot be stored: devices, pipes, sockets, names that are not UTF-8
 */
export async function scanTree(root: string, extents: FindExtents): Promise<Scanned[]> {
  const found: Scanned[] = [];
  const visit = async (path: string): Promise<void> => {
    const full = path === "" ? root : join(root, path);
    const stats = await lstat(full, { bigint: true });
    const mode = Number(stats.mode & MODE);
    if (stats.isFile()) {
      found.push({ path, type: "file", mode, ...(await dataOf(full, stats, extents)), state: stateOf(stats) });
    } else if (stats.isSymbolicLink() && path !== "") {
      found.push({ path, type: "link", target: await readlink(full) });
    } else if (stats.isDirectory()) {
      found.push({ path, type: "directory", mode });
      for (const name of await namesIn(full)) await visit(path === "" ? name : `${path}/${name}`);
    } else throw new BlobError("changed", `${full} cannot be stored: it is no file, directory or link`);
  };
  await visit("");
  return found;
}

/** @throws {BlobError} changed */
export async function checkUnchanged(root: string, scanned: readonly Scanned[]): Promise<void> {
  for (const entry of scanned) {
    if (entry.type !== "file") continue;
    const full = entry.path === "" ? root : join(root, entry.path);
    const stats = await lstat(full, { bigint: true }).catch(() => undefined);
    if (stats === undefined || stateOf(stats) !== entry.state)
      throw new BlobError("changed", `${full} has changed while it was read`);
  }
}

async function dataOf(
  path: string,
  { size: bytes, blocks }: BigIntStats,
  extents: FindExtents,
): Promise<Pick<ScannedFile, "size" | "data">> {
  const size = Number(bytes);
  // A file with all its blocks has no holes, and nearly every file is one.
  if (blocks * BLOCK >= bytes) return { size, data: size === 0 ? [] : [{ at: 0, length: size }] };
  return { size, data: await extents(path, size) };
}

function stateOf({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [ino, size, mtimeNs, ctimeNs].join(" ");
}

async function namesIn(directory: string): Promise<string[]> {
  const names = await readdir(directory, { encoding: "buffer" });
  return names
    .map((name) => {
      const text = name.toString("utf8");
      if (Buffer.from(text).equals(name)) return text;
      throw new BlobError(
        "changed",
        `${directory} cannot be stored: the name ${JSON.stringify(text)} in it is not UTF-8`,
      );
    })
    .sort();
}
