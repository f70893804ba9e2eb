/** Checks of what is stored of a snapshot or a template: every part is read to its end where it lies, and compared with its digest. */

import { type Static, Type } from "typebox";
import { contract } from "../http/contract.ts";
import { closed, SnapshotId } from "./shapes.ts";
import { FetchSnapshotBody } from "./snapshot-shapes.ts";

/** Texts of one part; what is damaged beyond these is only counted. */
export const MOST_FAULTS = 20;

/**
 * `whole`: each byte is as it was written, by its digest. `read`: it can be read to its end, and nothing keeps a digest of it.
 * `damaged`: it differs, or cannot be read. `missing`: it is not there. `unread`: it could not be checked, the faults say why.
 */
export const PartState = Type.Enum(["whole", "read", "damaged", "missing", "unread"]);
export type PartState = Static<typeof PartState>;

export const CheckedPart = Type.Object(
  {
    part: Type.Enum(["memory", "disk", "image"]),
    state: PartState,
    bytes: Type.Integer({ minimum: 0 }),
    /** Files or blobs that are not whole. */
    faulty: Type.Integer({ minimum: 0 }),
    /** What is wrong with the first of them. */
    faults: Type.Array(Type.String({ maxLength: 1_000 }), { maxItems: MOST_FAULTS }),
  },
  closed,
);
export type CheckedPart = Static<typeof CheckedPart>;

/** Absent: the node's own copy. Present: the copy in the blob store, which this node reads. */
const Stored = Type.Object(
  { ref: FetchSnapshotBody.properties.ref, projectId: Type.String({ maxLength: 64 }) },
  closed,
);
export const CheckSnapshotBody = Type.Object(
  {
    stored: Type.Optional(Stored),
    /** The id is that of a build of a template, which has an image and nothing else. */
    template: Type.Optional(Type.Literal(true)),
  },
  closed,
);
export type CheckSnapshotBody = Static<typeof CheckSnapshotBody>;

/** `waiting`: other checks of the node come first; `absent`: this node has no such snapshot. */
export const SnapshotCheck = Type.Object(
  {
    state: Type.Enum(["waiting", "running", "ended", "absent"]),
    doneBytes: Type.Integer({ minimum: 0 }),
    /** 0 until it is known. */
    totalBytes: Type.Integer({ minimum: 0 }),
    /** Empty until it has ended. */
    parts: Type.Array(CheckedPart),
  },
  closed,
);
export type SnapshotCheck = Static<typeof SnapshotCheck>;

const byCheck = Type.Object({ snapshotId: SnapshotId, checkId: Type.String({ format: "uuid" }) }, closed);

export const snapshotCheckRoutes = contract({
  checkSnapshot: {
    method: "PUT",
    path: "/v1/snapshots/{snapshotId}/checks/{checkId}",
    summary:
      "Read a copy of a snapshot and compare it with its digests, in the background; repeating it tells how far it is",
    tag: "Executions",
    access: "node",
    params: byCheck,
    body: CheckSnapshotBody,
    status: 200,
    reply: SnapshotCheck,
  },
  cancelSnapshotCheck: {
    method: "DELETE",
    path: "/v1/snapshots/{snapshotId}/checks/{checkId}",
    summary: "End a check of a snapshot; an unknown one is success",
    tag: "Executions",
    access: "node",
    params: byCheck,
    status: 204,
  },
});
