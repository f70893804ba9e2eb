/** Reads parts of files into a blob's content. */

import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { BlobError, codeOf } from "../content/blob-error.ts";
import type { Extent } from "./extents.ts";

/** @param into where the file's byte `at` goes to `from`; holds zeros @throws {BlobError} changed */
export async function readPart(
  root: string,
  { path, at, from, data }: { path: string; at: number; from: number; data: readonly Extent[] },
  into: Buffer,
): Promise<void> {
  const full = path === "" ? root : join(root, path);
  const changed = (cause?: unknown) => new BlobError("changed", `${full} has changed while it was read`, { cause });
  const file = await open(full, constants.O_RDONLY | constants.O_NOFOLLOW).catch((error: unknown) => {
    throw codeOf(error) === "ENOENT" ? changed(error) : error;
  });
  try {
    for (const extent of data) {
      let done = 0;
      while (done < extent.length) {
        const place = from + extent.at - at + done;
        const { bytesRead } = await file.read(into, place, extent.length - done, extent.at + done);
        if (bytesRead === 0) throw changed();
        done += bytesRead;
      }
    }
  } finally {
    await file.close();
  }
}
