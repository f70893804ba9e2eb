/**
 * Memory images that live for one call, as that of a fork: hashing them twice would take as long as writing them. Such an image counts
 * as unchanged for as long as the file system reports no change and the machine has not restarted since.
 */

import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { bootId } from "../../../shared/machine-id.ts";
import { corrupt, type Manifest, type StoredFile } from "./manifest.ts";

/** The files with their sizes and times, unread. */
export async function unhashedFiles(directory: string): Promise<StoredFile[]> {
  const names = (await readdir(directory)).sort();
  return Promise.all(
    names.map(async (name) => {
      const { size, ctimeMs } = await stat(join(directory, name));
      return { name, size, changedAt: ctimeMs };
    }),
  );
}

/** Whether the file system reports that no file changed since it was written. */
export async function isUntouched(directory: string, { files }: Pick<Manifest, "files">): Promise<boolean> {
  const same = await Promise.all(
    files.map(async ({ name, size, changedAt }) => {
      const found = await stat(join(directory, name)).catch(() => undefined);
      return found?.size === size && found.ctimeMs === changedAt;
    }),
  );
  return !same.includes(false);
}

/** @throws {AppError} snapshot_corrupt */
export async function checkUnhashed(directory: string, manifest: Pick<Manifest, "boot" | "files">): Promise<void> {
  if (manifest.boot !== bootId())
    throw corrupt("it was written for one call without hashes, and the machine has restarted since");
  if (!(await isUntouched(directory, manifest)))
    throw corrupt("it was written for one call without hashes, and a file has changed since");
}
