/**
 * Opens the target of a link. In a sticky directory such as /tmp the kernel lets a process, even root, follow only
 * links of its own user (fs.protected_symlinks). envd acts as root for all users, and a client's links must work.
 */

import type { FileHandle } from "node:fs/promises";
import { open, realpath } from "../system/disk.ts";
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
