/** Snapshots on the public API. */

import { Type } from "typebox";
import { contract } from "../http/contract.ts";
import { bySandbox, open, page, SandboxId, Timestamp } from "./common.ts";
import { Place } from "./stored/place.ts";

const info = { snapshotID: Type.String(), names: Type.Array(Type.String()) };
const SnapshotInfo = Type.Object(info);
const OURS = "Of this platform alone";
const ListedSnapshot = Type.Object({
  ...info,
  templateID: Type.String({ description: `The template that events and sandboxes of the snapshot name. ${OURS}` }),
  buildID: Type.String({ description: `The same of every name of one snapshot. ${OURS}` }),
  createdAt: Timestamp,
  sourceSandboxID: Type.Optional(Type.String({ description: `The sandbox that it was taken of. ${OURS}` })),
  place: Type.Optional(Place),
  storedBytes: Type.Optional(
    Type.Integer({ description: "Memory and disk of the snapshot on its node; of this platform alone" }),
  ),
});

export const snapshotApi = contract({
  createSnapshot: {
    method: "POST",
    path: "/sandboxes/{sandboxID}/snapshots",
    summary: "Snapshot a running sandbox; it goes on running",
    tag: "Snapshots",
    access: "project",
    params: bySandbox,
    body: Type.Object(
      {
        name: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
        memory: Type.Optional(Type.Boolean({ default: true, description: "false: the disk alone" })),
      },
      open,
    ),
    optionalBody: true,
    status: 201,
    reply: SnapshotInfo,
    errors: [400, 401, 404, 409, 500, 503, 507],
  },
  listSnapshots: {
    method: "GET",
    path: "/snapshots",
    summary: "List snapshots, newest first",
    tag: "Snapshots",
    access: "project",
    query: Type.Object({
      sandboxID: Type.Optional(SandboxId),
      name: Type.Optional(Type.String({ maxLength: 256 })),
      ...page,
    }),
    status: 200,
    reply: Type.Array(ListedSnapshot),
    errors: [400, 401],
  },
});
