/** Files of volumes in the images of a dump: other sandboxes change them while this one is stored. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { withoutSizes } from "../connections/image.ts";

/** @param paths where the sandbox sees volumes */
export async function letFilesChange(images: string, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return;
  const path = join(images, "files.img");
  await writeFile(path, withoutSizes(await readFile(path), paths));
}
