/** The manifests of a stored snapshot: its disk, and its memory with the row. Written to a store, or only described for other nodes. */

import { BlobError } from "../../blobs/content/blob-error.ts";
import { type UploadDeps, type Uploaded, type UploadProgress, uploadTree } from "../../blobs/upload.ts";
import type { Containers } from "../../containers/containers.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import type { FrozenContainers } from "../frozen/frozen.ts";
import type { SnapshotFiles } from "../store/files.ts";
import { writeNote } from "./note.ts";

export interface DescribeDeps {
  readonly containers: Pick<Containers, "diskFile">;
  readonly files: Pick<SnapshotFiles, "directory" | "manifest">;
  readonly frozen: Pick<FrozenContainers, "hold">;
}

export interface DescribeOptions {
  readonly signal: AbortSignal;
  readonly progress: (now: Pick<UploadProgress, "doneBytes" | "totalBytes">) => void;
}

/** A tree of this node and its manifest. */
export interface Described extends Uploaded {
  readonly root: string;
}

/** The disk of a snapshot in a file of its own, and the id of the image below it. */
export interface HeldDisk {
  readonly path: string;
  readonly image: string;
  /** Until then nothing of the platform writes to it, but for a resume. */
  readonly release: () => void;
}

/** @throws {BlobError} changed: it has no file of its own */
export async function holdDisk(
  { id, image, disk }: Pick<Snapshot, "id" | "image" | "disk">,
  { containers, frozen }: Pick<DescribeDeps, "containers" | "frozen">,
): Promise<HeldDisk> {
  const release = await frozen.hold(id, disk.containerId);
  const found = await containers
    .diskFile(image === undefined ? { containerId: disk.containerId } : { image })
    .catch((error: unknown) => {
      release();
      throw error;
    });
  if (found !== undefined) return { ...found, release };
  release();
  throw new BlobError("changed", `snapshot ${id} stays on this node: its disk is not in a file of its own (diskLimit)`);
}

/**
 * Nothing may run in the snapshot's container meanwhile.
 * @param image reference of the image below the disk; undefined: whoever lacks it asks this node
 * @throws {BlobError}
 */
export async function describeSnapshot(
  snapshot: Snapshot,
  { disk, image, begun }: { readonly disk: HeldDisk; readonly image?: string; readonly begun: number },
  { upload, files }: { readonly upload: UploadDeps } & Pick<DescribeDeps, "files">,
  { signal, progress }: DescribeOptions,
): Promise<{ readonly disk: Described; readonly whole: Described }> {
  const { id } = snapshot;
  const own = await files.manifest(id);
  if (own.boot !== undefined)
    throw new BlobError(
      "changed",
      `snapshot ${id} stays on this node: it lives for one call, and its files have no hashes`,
    );
  const written = await uploadTree(upload, { root: disk.path, kind: "disk", begun, progress }, signal);
  const root = files.directory(id);
  const whole = await uploadTree(
    upload,
    {
      root,
      kind: "snapshot",
      begun,
      origins: own.origins,
      parts: { ...(image === undefined ? {} : { image }), disk: written.ref },
      note: writeNote(snapshot, disk.image),
      progress,
    },
    signal,
  );
  return { disk: { ...written, root: disk.path }, whole: { ...whole, root } };
}
