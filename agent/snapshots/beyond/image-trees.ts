/**
 * Images in the blob store, those of templates and those below disks, each as a tree of its own: Docker's archive of the image, unpacked. The
 * snapshots of a template share it, so a tree that was uploaded a short time ago is not read again.
 */

import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { defined } from "../../../shared/defined.ts";
import { createSemaphore } from "../../../shared/program/semaphore.ts";
import { isRecent, type UploadDeps, type Uploaded, uploadTree } from "../../blobs/upload.ts";
import type { Containers } from "../../containers/containers.ts";
import type { DescribeOptions } from "./describe-snapshot.ts";
import { untar } from "./tar.ts";

export interface ImageTreesDeps {
  readonly containers: Pick<Containers, "save">;
  /** Directory for unpacked images; its content is of one agent process. */
  readonly work: string;
}

interface Wanted {
  readonly image: string;
  readonly domain: string;
  readonly begun: number;
  readonly progress?: DescribeOptions["progress"];
}

export interface ImageTrees {
  /**
   * @param domain whose content shares blobs, as in `deps.codec`
   * @param begun of the upload that the image is a part of, unix milliseconds
   */
  upload(of: Wanted, deps: UploadDeps, signal: AbortSignal): Promise<Uploaded>;
}

/** Resolves to a directory of its own with Docker's archive of the image, unpacked. The caller removes it. */
export async function unpackImage(image: string, { containers, work }: ImageTreesDeps, signal: AbortSignal) {
  await mkdir(work, { recursive: true, mode: 0o700 });
  const root = await mkdtemp(join(work, "image-"));
  try {
    await untar(await containers.save(image, signal), root, signal);
    return root;
  } catch (error) {
    await rm(root, { recursive: true, force: true });
    throw error;
  }
}

/** Uploaded images that are remembered. A manifest has some kilobytes for each gigabyte. */
const MOST_KNOWN = 32;

export function createImageTrees({ containers, work }: ImageTreesDeps): ImageTrees {
  const known = new Map<string, Uploaded>();
  /** This node unpacks one image at a time, so that its disk holds one. */
  const unpacking = createSemaphore(1);

  async function readOut({ image, begun, progress }: Wanted, deps: UploadDeps, signal: AbortSignal): Promise<Uploaded> {
    const root = await unpackImage(image, { containers, work }, signal);
    try {
      return await uploadTree(deps, { root, kind: "tree", begun, ...defined({ progress }) }, signal);
    } finally {
      await rm(root, { recursive: true, force: true });
    }
  }

  return {
    async upload(of, deps, signal) {
      const key = `${of.domain} ${of.image}`;
      const release = await unpacking.take(signal);
      try {
        const before = known.get(key);
        if (before !== undefined && isRecent(before, of.begun)) return before;
        const uploaded = await readOut(of, deps, signal);
        known.delete(key);
        known.set(key, uploaded);
        for (const oldest of known.keys()) if (known.size > MOST_KNOWN) known.delete(oldest);
        return uploaded;
      } finally {
        release();
      }
    },
  };
}
