/** The manifest beside a memory image: its content, and the checks of the files and of this machine against it. Pure. */

import { type Static, Type } from "typebox";
import { Compile } from "typebox/compile";
import { AppError } from "../../../shared/http/errors.ts";
import { differences, Origins } from "../../host/origins.ts";

export const MANIFEST_FORMAT = 1;

const Size = Type.Integer({ minimum: 0 });

const StoredFile = Type.Object({
  // A file of the snapshot's directory, never the directory itself or the one above.
  name: Type.String({ pattern: "^(?!\\.{1,2}$)[A-Za-z0-9._-]+$" }),
  size: Size,
  /** Absent where the manifest names a boot. */
  sha256: Type.Optional(Type.String({ pattern: "^[0-9a-f]{64}$" })),
  /** Time of the last change of any kind by the file system, unix milliseconds. */
  changedAt: Type.Number(),
});
export type StoredFile = Static<typeof StoredFile>;

const Inside = Type.Object({
  /** Addresses of the sandbox, its own at the dump first, which its sockets have or its programs know. */
  addresses: Type.Array(Type.String({ pattern: "^(\\d{1,3}\\.){3}\\d{1,3}$" })),
  /** Whether connections survive: then the sandbox's own packets are held back until all of them are restored. */
  connections: Type.Boolean(),
});
/** A sandbox's connections with itself. */
export type Inside = Readonly<Static<typeof Inside>>;

export const Manifest = Type.Object({
  format: Type.Integer(),
  snapshotId: Type.String(),
  sandboxId: Type.String(),
  executionId: Type.String(),
  kind: Type.Enum(["pause", "checkpoint"]),
  memory: Type.Boolean(),
  /** Container of the sandbox: the disk of a pause, the source of a checkpoint. */
  containerId: Type.String(),
  /** Image of a checkpoint's disk. */
  image: Type.Optional(Type.String()),
  build: Type.Object({ templateId: Type.String(), buildId: Type.String(), image: Type.String() }),
  resources: Type.Object({ cpuCount: Type.Integer(), memoryMB: Type.Integer(), diskSizeMB: Type.Integer() }),
  runtime: Type.String(),
  controlToken: Type.String(),
  origins: Origins,
  /** What the restore of its connections needs. Absent without memory, and where the dump has closed all connections. */
  inside: Type.Optional(Inside),
  memoryBytes: Size,
  diskBytes: Size,
  createdAt: Size,
  /** Of an image that lives for one call: the boot of the machine in which it was written. Its files have no hashes. */
  boot: Type.Optional(Type.String()),
  files: Type.Array(StoredFile),
});
export type Manifest = Static<typeof Manifest>;

const valid = Compile(Manifest);

/** @throws {AppError} snapshot_corrupt, snapshot_incompatible */
export function parseManifest(text: string, snapshotId: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw corrupt("its manifest is not readable", cause);
  }
  if (hasFormat(value) && value.format !== MANIFEST_FORMAT)
    throw incompatible(`it is of format ${value.format}, and this node reads ${MANIFEST_FORMAT}`);
  if (!valid.Check(value)) throw corrupt("its manifest is damaged");
  if (value.snapshotId !== snapshotId) throw corrupt("its manifest is of another snapshot");
  return value;
}

function hasFormat(value: unknown): value is { format: number } {
  return typeof value === "object" && value !== null && "format" in value && Number.isSafeInteger(value.format);
}

/**
 * Whether the memory can be restored on this machine, which made it: its processor may have been replaced.
 * @throws {AppError} snapshot_incompatible
 */
export function checkOrigins(
  manifest: Pick<Manifest, "origins">,
  { architecture, cpuFlags }: Pick<Origins, "architecture" | "cpuFlags">,
): void {
  const found = differences(manifest.origins, { architecture, cpuFlags });
  if (found.length > 0) throw incompatible(found.join("; "));
}

/**
 * Compares names and sizes on the disk with the manifest, before any content is read.
 * @throws {AppError} snapshot_files_missing, snapshot_corrupt
 */
export function checkSizes(manifest: Pick<Manifest, "files">, sizes: ReadonlyMap<string, number>): void {
  for (const { name, size } of manifest.files) {
    const found = sizes.get(name);
    if (found === undefined) throw missing(`the file ${name} is gone`);
    if (found !== size) throw corrupt(`the file ${name} has ${found} bytes instead of ${size}`);
  }
}

export function corrupt(why: string, cause?: unknown): AppError {
  return new AppError("snapshot_corrupt", `the snapshot is damaged: ${why}`, { cause });
}

export function missing(why: string): AppError {
  return new AppError("snapshot_files_missing", `files of the snapshot are missing: ${why}`);
}

function incompatible(why: string): AppError {
  return new AppError("snapshot_incompatible", `the snapshot cannot be restored here: ${why}`);
}
