/**
 * The routes for the content of volumes, which a client reaches with a volume's token. They answer errors with a string as
 * code.
 */

import { Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { open, Timestamp } from "../common.ts";

const uint32 = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: 4_294_967_294, description }));
const metadata = {
  uid: uint32("Owner"),
  gid: uint32("Group"),
  mode: Type.Optional(Type.Integer({ minimum: 0, maximum: 0o7777, description: "Permission bits as a number" })),
};
const at = { path: Type.String({ description: "From the volume's root on" }) };
const force = (description: string) => Type.Optional(Type.Boolean({ description }));
const ByPath = Type.Object(at);

const Entry = Type.Object({
  name: Type.String(),
  type: Type.Enum(["unknown", "file", "directory", "symlink"]),
  path: Type.String(),
  size: Type.Integer(),
  mode: Type.Integer({ description: "Permission bits as a number" }),
  uid: Type.Integer(),
  gid: Type.Integer(),
  atime: Timestamp,
  mtime: Timestamp,
  ctime: Timestamp,
  target: Type.Optional(Type.String({ description: "Of a symbolic link" })),
});

const common = {
  tag: "Volume content",
  access: "volume",
  params: Type.Object({ volumeID: Type.String({ format: "uuid" }) }),
} as const;
const BYTES = "application/octet-stream";
/** 503: the node of the volume does not answer or is busy. */
const found = [403, 404, 503];

export const volumeContentApi = contract({
  readVolumeEntry: {
    ...common,
    method: "GET",
    path: "/volumecontent/{volumeID}/path",
    summary: "Read what is at a path of a volume",
    query: ByPath,
    status: 200,
    reply: Entry,
    errors: found,
  },
  changeVolumeEntry: {
    ...common,
    method: "PATCH",
    path: "/volumecontent/{volumeID}/path",
    summary: "Change owner, group and mode",
    query: ByPath,
    body: Type.Object(metadata, open),
    optionalBody: true,
    status: 200,
    reply: Entry,
    errors: [...found, 413],
  },
  deleteVolumeEntry: {
    ...common,
    method: "DELETE",
    path: "/volumecontent/{volumeID}/path",
    summary: "Delete a file, or a directory with everything in it",
    query: ByPath,
    status: 204,
    errors: found,
  },
  listVolumeDirectory: {
    ...common,
    method: "GET",
    path: "/volumecontent/{volumeID}/dir",
    summary: "List a directory",
    query: Type.Object({ ...at, depth: Type.Optional(Type.Integer({ minimum: 1, maximum: 64, default: 1 })) }),
    status: 200,
    reply: Type.Array(Entry),
    errors: found,
  },
  makeVolumeDirectory: {
    ...common,
    method: "POST",
    path: "/volumecontent/{volumeID}/dir",
    summary: "Make a directory",
    query: Type.Object({ ...at, ...metadata, force: force("With the directories above; one that exists is no error") }),
    status: 201,
    reply: Entry,
    errors: [...found, 409, 507],
  },
  readVolumeFile: {
    ...common,
    method: "GET",
    path: "/volumecontent/{volumeID}/file",
    summary: "Download a file",
    query: ByPath,
    status: 200,
    stream: BYTES,
    errors: found,
  },
  writeVolumeFile: {
    ...common,
    method: "PUT",
    path: "/volumecontent/{volumeID}/file",
    summary: "Upload a file, which appears when it is complete",
    query: Type.Object({ ...at, ...metadata, force: force("Replaces a file that exists") }),
    bytes: BYTES,
    status: 201,
    reply: Entry,
    errors: [...found, 408, 409, 507],
  },
});
