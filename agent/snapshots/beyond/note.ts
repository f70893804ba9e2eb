/** What another node needs to know of a stored snapshot beside its files: its row, as text in its manifest. Pure. */

import { type Static, Type } from "typebox";
import { Compile } from "typebox/compile";
import { BuildReference, Resources } from "../../../shared/agent-api/routes.ts";
import { defined } from "../../../shared/defined.ts";
import { BlobError } from "../../blobs/content/blob-error.ts";
import type { Snapshot } from "../../store/snapshots.ts";

const NOTE_FORMAT = 1;
const Count = Type.Integer({ minimum: 0 });

const Note = Type.Object({
  format: Type.Integer(),
  id: Type.String(),
  kind: Type.Enum(["pause", "checkpoint"]),
  sandboxId: Type.String(),
  executionId: Type.String(),
  projectId: Type.Optional(Type.String()),
  /** Id of the image below its disk. */
  imageBelow: Type.String(),
  /** Name of a checkpoint's image. */
  image: Type.Optional(Type.String()),
  memory: Type.Boolean(),
  memoryBytes: Count,
  diskBytes: Count,
  takenAt: Count,
  disk: Type.Object({
    containerId: Type.String({ pattern: "^[A-Za-z0-9_-]{1,128}$" }),
    controlToken: Type.String(),
    build: BuildReference,
    resources: Resources,
    runtime: Type.String(),
    createdAt: Count,
  }),
  record: Type.Optional(Type.String()),
});
export type Note = Static<typeof Note>;

const valid = Compile(Note);

export function writeNote(snapshot: Snapshot, imageBelow: string): string {
  const { id, kind, sandboxId, executionId, projectId, image, memory, memoryBytes, diskBytes, takenAt, record } =
    snapshot;
  const { containerId, controlToken, build, resources, runtime, createdAt } = snapshot.disk;
  const note: Note = {
    format: NOTE_FORMAT,
    id,
    kind,
    sandboxId,
    executionId,
    imageBelow,
    memory,
    memoryBytes,
    diskBytes,
    takenAt,
    disk: { containerId, controlToken, build, resources, runtime, createdAt },
    ...defined({ projectId, image, record }),
  };
  return JSON.stringify(note);
}

/** @throws {BlobError} damaged, unreadable */
export function readNote(ref: string, text: string | undefined): Note {
  let value: unknown;
  try {
    value = JSON.parse(text ?? "");
  } catch (cause) {
    throw new BlobError("damaged", `the manifest ${ref} does not say which snapshot it is of`, { cause });
  }
  const format = typeof value === "object" && value !== null && "format" in value ? value.format : undefined;
  if (typeof format === "number" && format !== NOTE_FORMAT)
    throw new BlobError(
      "unreadable",
      `the snapshot ${ref} has format ${format}, and this version reads ${NOTE_FORMAT}`,
    );
  if (!valid.Check(value)) throw new BlobError("damaged", `what the manifest ${ref} says of its snapshot is damaged`);
  return value;
}
