/**
 * Writes one stored snapshot to the blob store: the image below its disk, its disk, and its memory, whose manifest names the two
 * others and is the snapshot's reference.
 */

import type { Blobs } from "../../blobs/host-blobs.ts";
import type { BlobStore } from "../../blobs/stores/store.ts";
import { dataBytes } from "../../blobs/trees/manifest.ts";
import type { UploadDeps } from "../../blobs/upload.ts";
import type { StoredBeyond } from "../../store/beyond/uploads.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import { type DescribeDeps, type DescribeOptions, describeSnapshot, holdDisk } from "./describe-snapshot.ts";
import type { ImageTrees } from "./image-trees.ts";

export interface UploadSnapshotDeps extends DescribeDeps {
  readonly blobs: Pick<Blobs, "codec" | "extents" | "transfers">;
  readonly images: ImageTrees;
  readonly now: () => number;
}

/** Nothing may run in the snapshot's container meanwhile. @throws {BlobError} */
export async function uploadSnapshot(
  snapshot: Snapshot,
  store: BlobStore,
  deps: UploadSnapshotDeps,
  options: DescribeOptions,
): Promise<StoredBeyond> {
  const { blobs, files, now } = deps;
  const { projectId: domain = "" } = snapshot;
  const { extents, transfers } = blobs;
  const begun = now();
  const disk = await holdDisk(snapshot, deps);
  try {
    const upload: UploadDeps = { store, codec: blobs.codec(domain), extents, transfers, now };
    const image = await deps.images.upload({ image: disk.image, domain, begun }, upload, options.signal);
    const trees = await describeSnapshot(snapshot, { disk, image: image.ref, begun }, { upload, files }, options);
    return {
      ref: trees.whole.ref,
      bytes: [image, trees.disk, trees.whole].reduce((sum, { manifest }) => sum + dataBytes(manifest), 0),
    };
  } finally {
    disk.release();
  }
}
