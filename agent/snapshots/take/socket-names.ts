/**
 * Unix sockets whose file was renamed after the bind, in the images of a dump: a restore binds them by the name that the file has,
 * so that clients find them.
 */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type SocketName, withSocketNames } from "../connections/image.ts";

/** See agent/snapshots/criu/socket-names.c. */
const LIST = "socket-names";
/** An inode, a directory and a name. */
const PARTS = 3;

/** Does nothing where the work directory has no list. @throws {Error} if the list or the image is damaged */
export async function nameSockets({ images, work }: { readonly images: string; readonly work: string }): Promise<void> {
  const list = await readFile(join(work, LIST)).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  });
  const names = socketNames(list ?? Buffer.alloc(0));
  if (names.size === 0) return;
  const path = join(images, "files.img");
  await writeFile(path, withSocketNames(await readFile(path), names));
}

/** Pure. @throws {Error} if the list is damaged */
export function socketNames(list: Buffer): Map<number, SocketName> {
  // One character for each byte: a name may have any.
  const parts = list.toString("latin1").split("\0");
  if (parts.pop() !== "" || parts.length % PARTS !== 0) throw new Error("the list of renamed sockets is cut off");
  const names = new Map<number, SocketName>();
  for (let at = 0; at < parts.length; at += PARTS) {
    const [inode, directory = "", name = ""] = parts.slice(at, at + PARTS);
    names.set(Number(inode), { directory: Buffer.from(directory, "latin1"), name: Buffer.from(name, "latin1") });
  }
  return names;
}
