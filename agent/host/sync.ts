/** Resolves when a file, or the names in a directory, are on the disk. */

import { open } from "node:fs/promises";

export async function sync(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
