/** The operators' routes of checks: every stored part of a snapshot, and the image of a template, is read where it lies, and compared with its digest. */

import { type Static, Type } from "typebox";
import { MOST_FAULTS } from "../../agent-api/snapshot-check-shapes.ts";
import { contract } from "../../http/contract.ts";
import { nullable, page, Timestamp } from "../common.ts";

const snapshotID = Type.String({ format: "uuid", description: "As `GET /admin/snapshots` has it" });

const StoredState = Type.Object({
  snapshotID,
  kind: Type.Enum(["paused", "snapshot", "template"], {
    description: "`template`: the image of a build that sandboxes start from",
  }),
  id: Type.String({ description: "Of the paused sandbox, of the snapshot as events name it, or of the build" }),
  teamID: Type.String(),
  templateID: Type.String(),
  nodeID: nullable(Type.String({ description: "The node that has it" })),
  inStore: Type.Boolean({ description: "It is in the blob store too, and outlives the node" }),
  storedBytes: nullable(
    Type.Integer({ description: "Memory and disk; null until the node has reported them, and for an image" }),
  ),
  unusedSince: Timestamp,
});
export type StoredState = Static<typeof StoredState>;

const Part = Type.Object({
  part: Type.Enum(["memory", "disk", "image"], { description: "`image`: the one below the disk" }),
  state: Type.Enum(["whole", "read", "damaged", "missing", "unread"], {
    description:
      "`whole`: each byte is as it was written, by its digest; `read`: readable to its end, and nothing keeps a digest of it; `unread`: it could not be checked, `faults` says why",
  }),
  bytes: Type.Integer(),
  faulty: Type.Integer({ description: "Files or blobs that are not whole" }),
  faults: Type.Array(Type.String(), { maxItems: MOST_FAULTS, description: "What is wrong with the first of them" }),
});

const Copy = Type.Object({
  place: Type.Enum(["node", "store"]),
  nodeID: Type.String({ description: "The node that has it, or that reads it in the blob store" }),
  state: Type.Enum(["waiting", "running", "whole", "damaged", "missing", "unread"], {
    description: "`waiting`: its node has other checks first; `unread`: `error` or a part says why",
  }),
  doneBytes: Type.Integer(),
  totalBytes: Type.Integer({ description: "0 until it is known" }),
  parts: Type.Array(Part),
  error: nullable(Type.String()),
});
export type CheckedCopy = Static<typeof Copy>;

const Verdict = Type.Enum(["whole", "damaged", "lost", "unread"], {
  description:
    "`damaged`: something is, and of each such part another copy is good; `lost`: of a part there is no good copy; `unread`: no damage was found, and something could not be read",
});

export const SnapshotVerification = Type.Object({
  checkID: Type.String({ format: "uuid" }),
  snapshotID,
  verdict: nullable(Verdict),
  copies: Type.Array(Copy),
  good: Type.Array(
    Type.Object({
      part: Type.String(),
      places: Type.Array(Type.String(), { description: "`store`, or `node/<id>`" }),
    }),
    {
      description:
        "Where there is a good copy of each part that is damaged or missing somewhere; empty places: nowhere",
    },
  ),
});
export type SnapshotVerification = Static<typeof SnapshotVerification>;

const admin = { tag: "Admin", access: "admin" } as const;
const byCheck = Type.Object({ snapshotID, checkID: Type.String({ format: "uuid" }) });

export const snapshotCheckApi = contract({
  listStoredStates: {
    ...admin,
    method: "GET",
    path: "/admin/snapshots",
    summary: "Every paused sandbox, every snapshot and the image of every template that is stored, of all projects",
    query: Type.Object({ ...page }),
    status: 200,
    reply: Type.Array(StoredState),
    errors: [400, 401],
  },
  verifySnapshot: {
    ...admin,
    method: "POST",
    path: "/admin/snapshots/{snapshotID}/checks",
    summary: "Begin to read every copy of a snapshot, or of a template's image, and to compare it with its digests",
    params: Type.Object({ snapshotID }),
    status: 202,
    reply: SnapshotVerification,
    errors: [401, 404],
  },
  readSnapshotCheck: {
    ...admin,
    method: "GET",
    path: "/admin/snapshots/{snapshotID}/checks/{checkID}",
    summary:
      "How far a check is; each node reads one snapshot at a time, ends a check that nobody has asked about for a minute, and begins one anew that it does not know",
    params: byCheck,
    status: 200,
    reply: SnapshotVerification,
    errors: [401, 404],
  },
  cancelSnapshotCheck: {
    ...admin,
    method: "DELETE",
    path: "/admin/snapshots/{snapshotID}/checks/{checkID}",
    summary: "End a check; one that has ended or is not known is success",
    params: byCheck,
    status: 204,
    errors: [401],
  },
});
