/**
 * Opens what a link leads to. In a sticky directory such as /tmp the kernel follows nobody's link but one's own, also
 * for root (fs.protected_symlinks); a client's own links there must work all the same, and envd is root for everybody.
 */

import { type FileHandle, open, realpath } from "node:fs/promises";
import { errnoOf } from "../system/errno.ts";

/** As `open` of Node. @throws ErrnoException of the first attempt when following by hand does not help either */
export async function openFollowed(path: string, flags: number, mode?: number): Promise<FileHandle> {
  try {
    return await open(path, flags, mode);
  } catch (error) {
    if (errnoOf(error) !== "EACCES") throw error;
    const target = await realpath(path).catch(() => path);
    if (target === path) throw error;
    return open(target, flags, mode);
  }
}
