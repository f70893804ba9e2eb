/**
 * Brings a snapshot from another node or the blob store to this node: its manifest first, which says whether it fits, then the image below its disk,
 * its memory, its disk, and at last its row, with which it is one of this node's own. Cut at any line, what is there has no row, and the next
 * try or the sweep removes it.
 */

import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { AppError } from "../../../shared/http/errors.ts";
import type { Log } from "../../../shared/program/log.ts";
import { ENVD_VERSION } from "../../../shared/version.ts";
import { BlobError } from "../../blobs/content/blob-error.ts";
import { downloadTree, fetchManifest } from "../../blobs/download.ts";
import type { Blobs } from "../../blobs/host-blobs.ts";
import type { OpenPeer } from "../../blobs/peer.ts";
import { type BlobReader, type BlobSource, createReader } from "../../blobs/sources.ts";
import { dataBytes, type TreeManifest } from "../../blobs/trees/manifest.ts";
import type { Docker } from "../../containers/host-docker.ts";
import type { Origins } from "../../host/origins.ts";
import type { DiskReserve } from "../../node-disk/reserve.ts";
import type { Stores } from "../../store/stores.ts";
import { snapshotImage } from "../store/docker-images-below.ts";
import type { SnapshotFiles } from "../store/files.ts";
import { checkCompatible } from "./compatible.ts";
import { type Note, readNote } from "./note.ts";
import { tarred } from "./tar.ts";

/** Between two questions how far another node has described an image. */
const DESCRIBING_MS = 250;

export interface FetchSnapshotDeps {
  readonly blobs: Pick<Blobs, "codec" | "transfers" | "work">;
  readonly docker: Pick<Docker, "runtime"> & {
    readonly containers: Pick<Docker["containers"], "diskPlace" | "keepBelow" | "image" | "load" | "removeImage">;
  };
  readonly files: Pick<SnapshotFiles, "directory" | "keepTimes" | "remove">;
  readonly stores: Pick<Stores, "snapshots" | "uploads">;
  readonly disk: Pick<DiskReserve, "storageRefusal">;
  readonly origins: () => Omit<Origins, "envd">;
  readonly now: () => number;
  readonly log: Log;
}

export interface Wanted {
  readonly snapshotId: string;
  readonly ref: string;
  readonly projectId: string;
  /** The start restores memory. */
  readonly memory: boolean;
}

export interface FetchFrom {
  readonly sources: readonly BlobSource[];
  /** The reference is of the blob store, so the snapshot is stored beyond this node too. */
  readonly isStore: boolean;
  /** The image below the disk, where the snapshot's manifest does not name it: another node describes it when it is asked. */
  readonly image?: OpenPeer["image"];
}

export interface FetchOptions {
  readonly signal: AbortSignal;
  readonly progress: (now: { readonly doneBytes: number; readonly totalBytes: number }) => void;
}

interface Parts {
  readonly note: Note;
  readonly whole: TreeManifest;
  readonly disk: TreeManifest;
  /** Undefined: the image is here already. */
  readonly image: TreeManifest | undefined;
}

/** @throws {AppError} snapshot_incompatible, no_space; {BlobError} */
export async function fetchSnapshot(
  wanted: Wanted,
  from: FetchFrom,
  deps: FetchSnapshotDeps,
  options: FetchOptions,
): Promise<void> {
  const { stores, disk, now, log } = deps;
  const { signal } = options;
  const begun = now();
  const reader = createReader({ sources: from.sources, codec: deps.blobs.codec(wanted.projectId), now });
  const described = await describe(wanted, { reader, image: from.image }, deps, signal);
  const parts = { ...described, note: withOwnContainer(described.note) };
  const { note, whole } = parts;
  const place = await deps.docker.containers.diskPlace(
    note.image === undefined ? { containerId: note.disk.containerId } : { image: note.image },
  );
  if (place === undefined)
    throw new AppError(
      "snapshot_incompatible",
      `snapshot ${note.id} has a disk image, and sandboxes of this node have none of their own (diskLimit)`,
    );
  const sizes = { memory: dataBytes(whole), disk: dataBytes(parts.disk), image: imageBytes(parts) };
  const refused = await disk.storageRefusal({ snapshots: sizes.memory + sizes.image, sandboxes: sizes.disk });
  if (refused !== undefined) throw refused;

  const total = sizes.memory + sizes.disk + sizes.image;
  const done = { before: 0 };
  const download = async (manifest: TreeManifest, to: string) => {
    await rm(to, { recursive: true, force: true });
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    const progress = ({ doneBytes }: { readonly doneBytes: number }) =>
      options.progress({ doneBytes: done.before + doneBytes, totalBytes: total });
    await downloadTree({ reader, transfers: deps.blobs.transfers }, { manifest, to, progress }, signal);
    done.before += dataBytes(manifest);
  };
  try {
    if (parts.image !== undefined) await loadImage(parts.image, note, { download, deps, signal });
    await deps.docker.containers.keepBelow(note.imageBelow, snapshotImage(note.id));
    await download(whole, deps.files.directory(note.id));
    // Without these times each restore would hash the memory before it begins, and not beside its work.
    await deps.files
      .keepTimes(note.id)
      .catch((error: unknown) =>
        log.warn({ err: error, snapshotId: note.id }, "could not note the times of a snapshot's files"),
      );
    // Last, because a disk whose container is unknown and that no row names is removed.
    await download(parts.disk, place);
    addRow(note, stores);
    if (from.isStore) stores.uploads.add(note.id, { ref: wanted.ref, bytes: total });
  } catch (error) {
    if (stores.snapshots.get(note.id) === undefined) {
      await rm(place, { force: true });
      await deps.files.remove(note.id);
      await deps.docker.containers.removeImage(snapshotImage(note.id));
    }
    throw error;
  }
  const sources = from.sources.map(({ name }) => name);
  const facts = { snapshotId: note.id, sandboxId: note.sandboxId, bytes: total, sources, tookMs: now() - begun };
  log.info(facts, "fetched a snapshot");
}

/** Reads the manifests, and refuses what does not fit. */
async function describe(
  { snapshotId, ref, memory }: Wanted,
  { reader, image }: { readonly reader: BlobReader; readonly image: FetchFrom["image"] },
  { docker, origins }: FetchSnapshotDeps,
  signal: AbortSignal,
): Promise<Parts> {
  const whole = await fetchManifest(reader, ref, signal);
  const note = readNote(ref, whole.note);
  if (note.id !== snapshotId) throw new BlobError("damaged", `${ref} is of snapshot ${note.id}, not of ${snapshotId}`);
  const hasRuntime = await docker.runtime(note.disk.runtime).then(
    () => true,
    () => false,
  );
  checkCompatible({ origins: whole.origins, note }, { ...origins(), envd: ENVD_VERSION, hasRuntime }, memory);
  const part = (name: string) => {
    const found = whole.parts?.[name];
    if (found === undefined) throw new BlobError("damaged", `the manifest ${ref} names no ${name}`);
    return fetchManifest(reader, found, signal);
  };
  const disk = await part("disk");
  if ((await docker.containers.image(note.imageBelow)) !== undefined) return { note, whole, disk, image: undefined };
  if (whole.parts?.["image"] !== undefined || image === undefined)
    return { note, whole, disk, image: await part("image") };
  return { note, whole, disk, image: await fetchManifest(reader, await describedImage(image, signal), signal) };
}

/** Waits until the other node has described it. */
async function describedImage(image: NonNullable<FetchFrom["image"]>, signal: AbortSignal): Promise<string> {
  for (;;) {
    const { ref } = await image(signal);
    if (ref !== undefined) return ref;
    await delay(DESCRIBING_MS, undefined, { signal });
  }
}

function imageBytes({ image }: Parts): number {
  return image === undefined ? 0 : dataBytes(image);
}

async function loadImage(
  manifest: TreeManifest,
  { id, imageBelow }: Note,
  {
    download,
    deps: { blobs, docker },
    signal,
  }: {
    readonly download: (manifest: TreeManifest, to: string) => Promise<void>;
    readonly deps: FetchSnapshotDeps;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  await mkdir(blobs.work, { recursive: true, mode: 0o700 });
  const work = await mkdtemp(join(blobs.work, "image-"));
  try {
    const unpacked = join(work, "image");
    await download(manifest, unpacked);
    await tarred(unpacked, (archive) => docker.containers.load(archive, signal), signal);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  if ((await docker.containers.image(imageBelow)) === undefined)
    throw new BlobError("damaged", `the image of snapshot ${id} is not ${imageBelow}, on which its disk stands`);
}

/**
 * The container of a paused sandbox is one of the other node. Under its id this node would find it where both share a Docker
 * daemon, and take or remove what is not its own; under this one it finds none, and makes one when the sandbox is resumed.
 */
function withOwnContainer(note: Note): Note {
  const containerId = createHash("sha256").update(`${note.id} ${note.disk.containerId}`).digest("hex");
  return { ...note, disk: { ...note.disk, containerId } };
}

function addRow(note: Note, { snapshots }: Pick<Stores, "snapshots">): void {
  const { id, kind, sandboxId, executionId, projectId, image, memory, memoryBytes, diskBytes, takenAt, record } = note;
  const sizes = { memoryBytes, diskBytes, takenAt };
  // A paused sandbox has no container here yet: the resume does not look for one first.
  const takenFrom = kind === "pause" ? note.disk.containerId : undefined;
  const disk = { ...note.disk, takenFrom, upperDirectory: undefined };
  const facts = { id, kind, sandboxId, executionId, projectId, image, memory, disk, record };
  snapshots.intend({ ...facts, state: "taking", ...sizes });
  snapshots.keep(id, sizes, () => undefined);
}
