/**
 * The files below a folder, here and in a sandbox. Names that come out of a sandbox are hostile: none of them leads out of the
 * folder that is written to, and no link is followed or made.
 */

import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { type EntryInfo, FileType } from "../../shared/envd-rpc/gen/filesystem_pb.js";
import type { Inside } from "./sandbox.ts";

/** A file or folder by its path below the copied folder. */
export interface Leaf {
  readonly path: string;
  readonly kind: "file" | "folder";
  readonly size: number;
  /** Permission bits. */
  readonly mode: number;
}

export interface Tree {
  readonly leaves: readonly Leaf[];
  /** Entries that the copy leaves out: links, pipes, devices, and names that this machine does not allow. */
  readonly skipped: readonly string[];
}

/** As deep as envd lists at once. */
const DEPTH = 64;

export async function treeHere(folder: string): Promise<Tree> {
  const leaves: Leaf[] = [];
  const skipped: string[] = [];
  async function look(below: string): Promise<void> {
    const entries = await readdir(join(folder, below), { withFileTypes: true });
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = below === "" ? entry.name : `${below}/${entry.name}`;
      if (!entry.isFile() && !entry.isDirectory()) {
        skipped.push(path);
        continue;
      }
      const { size, mode } = await stat(join(folder, path));
      leaves.push({ path, kind: entry.isFile() ? "file" : "folder", size, mode: mode & 0o777 });
      if (entry.isDirectory()) await look(path);
    }
  }
  await look("");
  return { leaves, skipped };
}

export async function treeThere(inside: Inside, folder: string, user: string | undefined): Promise<Tree> {
  const base = folder.replace(/\/+$/, "");
  const { entries } = await inside.filesystem.listDir({ path: folder, depth: DEPTH }, inside.as(user));
  const { entry } = await inside.filesystem.stat({ path: folder }, inside.as(user));
  const root = entry?.path ?? base;
  const leaves: Leaf[] = [];
  const skipped: string[] = [];
  for (const info of entries) {
    const path = pathBelow(root, info);
    const kind = kindOf(info);
    if (path === undefined || kind === undefined) skipped.push(info.path);
    else leaves.push({ path, kind, size: Number(info.size), mode: info.mode & 0o777 });
  }
  return { leaves: leaves.toSorted((a, b) => (a.path < b.path ? -1 : 1)), skipped };
}

/** Undefined: the name leads elsewhere, or no file can have it. */
export function pathBelow(root: string, { path }: Pick<EntryInfo, "path">): string | undefined {
  const prefix = root === "/" ? "/" : `${root}/`;
  if (!path.startsWith(prefix)) return undefined;
  const below = path.slice(prefix.length);
  const isSafe = below.split("/").every((name) => name !== "" && name !== "." && name !== ".." && !name.includes("\0"));
  return isSafe ? below : undefined;
}

export async function lookThere(
  inside: Inside,
  path: string,
  user: string | undefined,
): Promise<EntryInfo | undefined> {
  try {
    return (await inside.filesystem.stat({ path }, inside.as(user))).entry;
  } catch (error) {
    if (ConnectError.from(error).code === Code.NotFound) return undefined;
    throw error;
  }
}

/** envd says of a link what it leads to. */
function kindOf({ type, symlinkTarget }: EntryInfo): Leaf["kind"] | undefined {
  if (symlinkTarget !== undefined) return undefined;
  if (type === FileType.FILE) return "file";
  return type === FileType.DIRECTORY ? "folder" : undefined;
}
