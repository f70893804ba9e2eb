/** Files that are there as a whole or not at all. */

import { existsSync } from "node:fs";
import { link, rename, rm } from "node:fs/promises";

/** Gives an unfinished file its name, in one step. @throws when a file has that name already: it is not replaced */
export async function giveName(unfinished: string, path: string): Promise<void> {
  try {
    await link(unfinished, path);
  } catch (cause) {
    if (existsSync(path)) throw new Error(`there is a file ${path} already`, { cause });
    // File systems without hard links, such as those of USB sticks.
    await rename(unfinished, path);
    return;
  }
  await rm(unfinished);
}
