/**
 * Reads this node's copy of a snapshot to its end: the files of its memory against the digests of its manifest, its disk, and the
 * image below, whose layers Docker compares with their digests. It writes nothing, and mounts no disk.
 */

import type { Stats } from "node:fs";
import { open, stat } from "node:fs/promises";
import type { CheckedPart } from "../../../shared/agent-api/snapshot-check-shapes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { codeOf } from "../../blobs/content/blob-error.ts";
import type { Containers } from "../../containers/containers.ts";
import type { Snapshot, SnapshotStore } from "../../store/snapshots.ts";
import type { SnapshotFiles } from "../store/files.ts";
import type { ImageReads } from "./image-reads.ts";
import { type CheckOptions, partNotes } from "./part.ts";

export interface NodeCopyDeps {
  readonly files: Pick<SnapshotFiles, "manifest" | "check">;
  readonly containers: Pick<Containers, "diskFile" | "diskPlace" | "image">;
  readonly images: ImageReads;
  readonly snapshots: Pick<SnapshotStore, "get">;
}

const STEP_BYTES = 1024 * 1024;

/** @throws {AppError} not_found, conflict while it is taken, resumed or deleted */
export async function checkNodeCopy(id: string, deps: NodeCopyDeps, options: CheckOptions): Promise<CheckedPart[]> {
  const snapshot = restingSnapshot(id, deps.snapshots);
  const disk = await diskOf(snapshot, deps.containers);
  const diskStats = disk.path === undefined ? undefined : await statsOf(disk.path);
  options.total(snapshot.memoryBytes + (diskStats?.size ?? 0));
  const memory = await checkMemory(id, deps.files, options);
  const parts = [memory, await checkDisk(disk.path, diskStats, options), await deps.images.check(disk, options)];
  // What a sandbox writes to meanwhile is not damaged.
  restingSnapshot(id, deps.snapshots);
  return parts;
}

function restingSnapshot(id: string, snapshots: NodeCopyDeps["snapshots"]): Snapshot {
  const snapshot = snapshots.get(id);
  if (snapshot === undefined) throw new AppError("not_found", `snapshot ${id} is not on this node`);
  if (snapshot.state === "stored" && !snapshot.resuming) return snapshot;
  throw new AppError("conflict", `snapshot ${id} is in use: it is being taken or resumed`);
}

interface Disk {
  /** Undefined: Docker has it, with the image or in its container. */
  readonly path: string | undefined;
  /** Name or id of the image below. */
  readonly image: string;
  /** What it means when Docker has no image of this name. */
  readonly absent: "missing" | "unread";
}

async function diskOf(
  { image, disk }: Pick<Snapshot, "image" | "disk">,
  containers: NodeCopyDeps["containers"],
): Promise<Disk> {
  if (image === undefined) {
    // By its place alone: Docker would describe the container only after a mount of its disk, which writes to it. The image may
    // have lost the name that the container was made with.
    const path = await containers.diskPlace({ containerId: disk.containerId });
    return { path, image: disk.build.image, absent: "unread" };
  }
  const own = await containers.diskFile({ image });
  if (own !== undefined) return { ...own, absent: "missing" };
  const inDocker = (await containers.image(image)) !== undefined;
  return { path: inDocker ? undefined : await containers.diskPlace({ image }), image, absent: "missing" };
}

async function checkMemory(id: string, files: NodeCopyDeps["files"], options: CheckOptions): Promise<CheckedPart> {
  const notes = partNotes("memory", options.read);
  try {
    const manifest = await files.manifest(id);
    for (const { name, size, fault, missing } of await files.check(id, manifest, options.signal, notes.read)) {
      if (fault !== undefined) notes.fault(missing ? "missing" : "damaged", `${name} (${size} bytes): ${fault}`);
    }
  } catch (error) {
    options.signal.throwIfAborted();
    const { code, message } = AppError.from(error);
    notes.fault(code === "snapshot_files_missing" ? "missing" : stateOf(code), message);
  }
  return notes.outcome("whole");
}

/** A manifest of another version is no damage. */
function stateOf(code: string): "damaged" | "unread" {
  return code === "snapshot_corrupt" ? "damaged" : "unread";
}

async function checkDisk(
  path: string | undefined,
  stats: Stats | undefined,
  options: CheckOptions,
): Promise<CheckedPart> {
  const notes = partNotes("disk", options.read);
  if (path === undefined)
    notes.fault("unread", "it is no file of its own: Docker has it, with the image or in its container");
  else if (stats === undefined) notes.fault("missing", `${path} is gone`);
  else {
    try {
      await readWhole(path, notes.read, options.signal);
    } catch (error) {
      options.signal.throwIfAborted();
      notes.fault("damaged", `${path} cannot be read: ${codeOf(error) ?? String(error)}`);
    }
  }
  return notes.outcome("read");
}

async function statsOf(path: string): Promise<Stats | undefined> {
  return stat(path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  });
}

async function readWhole(path: string, read: (bytes: number) => void, signal: AbortSignal): Promise<void> {
  const file = await open(path, "r");
  try {
    const buffer = Buffer.allocUnsafe(STEP_BYTES);
    for (;;) {
      signal.throwIfAborted();
      const { bytesRead } = await file.read(buffer, 0, STEP_BYTES);
      if (bytesRead === 0) return;
      read(bytesRead);
    }
  } finally {
    await file.close();
  }
}
