/** A checkpoint of a sandbox: the request, its result, and what a node has stored. */

import { type Static, Type } from "typebox";
import { closed, SnapshotId, time } from "./shapes.ts";

export const TakeSnapshotBody = Type.Object(
  {
    snapshotId: SnapshotId,
    /** false: only what is on disk. */
    memory: Type.Boolean(),
  },
  closed,
);
export type TakeSnapshotBody = Static<typeof TakeSnapshotBody>;

/** A snapshot that is durable: fsynced, with a manifest, under its final name. */
export const TakenSnapshot = Type.Object(
  {
    executionId: Type.String(),
    sandboxId: Type.String(),
    snapshotId: SnapshotId,
    /** Memory is in it. False although asked for: the node cannot, and said so in its capabilities. */
    memory: Type.Boolean(),
    /** Of the checkpoint's disk, for starts with origin `snapshot`; absent for a pause, whose disk is its container. */
    image: Type.Optional(Type.String()),
    memoryBytes: Type.Integer({ minimum: 0 }),
    diskBytes: Type.Integer({ minimum: 0 }),
    takenAt: time,
  },
  closed,
);
export type TakenSnapshot = Static<typeof TakenSnapshot>;

/** A snapshot on the node's disk. */
export const StoredSnapshot = Type.Object(
  {
    snapshotId: SnapshotId,
    /** `pause`: the sandbox itself, of which this is the only place; `checkpoint`: a copy others start from. */
    kind: Type.Enum(["pause", "checkpoint"]),
    sandboxId: Type.String(),
    /** The execution it was taken of. */
    executionId: Type.String(),
    memory: Type.Boolean(),
    memoryBytes: Type.Integer({ minimum: 0 }),
    diskBytes: Type.Integer({ minimum: 0 }),
    takenAt: time,
  },
  closed,
);
export type StoredSnapshot = Static<typeof StoredSnapshot>;
