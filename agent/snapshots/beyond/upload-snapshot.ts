/**
 * Writes one stored snapshot to the blob store: the image below its disk, its disk, and its memory, whose manifest names the two
 * others and is the snapshot's reference.
 */

import { BlobError } from "../../blobs/content/blob-error.ts";
import type { Blobs } from "../../blobs/host-blobs.ts";
import type { BlobStore } from "../../blobs/stores/store.ts";
import { dataBytes } from "../../blobs/trees/manifest.ts";
import { type UploadDeps, type UploadProgress, uploadTree } from "../../blobs/upload.ts";
import type { Containers } from "../../containers/containers.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import type { StoredBeyond } from "../../store/uploads.ts";
import type { SnapshotFiles } from "../store/files.ts";
import type { ImageTrees } from "./image-trees.ts";
import { writeNote } from "./note.ts";

export interface UploadSnapshotDeps {
  readonly blobs: Pick<Blobs, "codec" | "extents" | "transfers">;
  readonly images: ImageTrees;
  readonly containers: Pick<Containers, "diskFile">;
  readonly files: Pick<SnapshotFiles, "directory" | "manifest">;
  readonly now: () => number;
}

export interface UploadOptions {
  readonly signal: AbortSignal;
  readonly progress: (now: Pick<UploadProgress, "doneBytes" | "totalBytes">) => void;
}

/** Nothing may run in the snapshot's container meanwhile. @throws {BlobError} */
export async function uploadSnapshot(
  snapshot: Snapshot,
  store: BlobStore,
  deps: UploadSnapshotDeps,
  { signal, progress }: UploadOptions,
): Promise<StoredBeyond> {
  const { blobs, containers, files, now } = deps;
  const { id, projectId: domain = "" } = snapshot;
  const begun = now();
  const disk = await containers.diskFile(
    snapshot.image === undefined ? { containerId: snapshot.disk.containerId } : { image: snapshot.image },
  );
  if (disk === undefined)
    throw new BlobError(
      "changed",
      `snapshot ${id} stays on this node: its disk is not in a file of its own (diskLimit)`,
    );
  const own = await files.manifest(id);
  const upload: UploadDeps = {
    store,
    codec: blobs.codec(domain),
    extents: blobs.extents,
    transfers: blobs.transfers,
    now,
  };
  const image = await deps.images.upload({ image: disk.image, domain, begun }, upload, signal);
  const written = await uploadTree(upload, { root: disk.path, kind: "disk", begun, progress }, signal);
  const whole = await uploadTree(
    upload,
    {
      root: files.directory(id),
      kind: "snapshot",
      begun,
      origins: own.origins,
      parts: { image: image.ref, disk: written.ref },
      note: writeNote(snapshot, disk.image),
      progress,
    },
    signal,
  );
  return {
    ref: whole.ref,
    bytes: [image, written, whole].reduce((sum, { manifest }) => sum + dataBytes(manifest), 0),
  };
}
