/** Volumes on the public API. */

import { Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { messages, open } from "../common.ts";

const VolumeWithToken = Type.Object({
  volumeID: Type.String(),
  name: Type.String(),
  token: Type.String(),
  domain: Type.Optional(
    Type.String({
      description: "SDKs send the volume's content to https://api.<domain>, unless their settings name another address",
    }),
  ),
});

export const volumeName = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: "^[a-zA-Z0-9_-]+$",
  ...messages({
    pattern: "Invalid volume name",
    minLength: "Invalid volume name",
    maxLength: "Invalid volume name",
  }),
});

const common = { tag: "Volumes", access: "project" } as const;
// Text that is no UUID is the id of no volume: 404, which SDKs read as "not found", or as "already deleted".
const byVolume = Type.Object({ volumeID: Type.String({ minLength: 1, maxLength: 512 }) });

export const volumeApi = contract({
  listVolumes: {
    ...common,
    method: "GET",
    path: "/volumes",
    summary: "List volumes",
    status: 200,
    reply: Type.Array(Type.Object({ volumeID: Type.String(), name: Type.String() })),
    errors: [401],
  },
  createVolume: {
    ...common,
    method: "POST",
    path: "/volumes",
    summary: "Create a volume",
    body: Type.Object({ name: volumeName }, open),
    status: 201,
    reply: VolumeWithToken,
    errors: [400, 401, 403, 409, 503, 507],
  },
  getVolume: {
    ...common,
    method: "GET",
    path: "/volumes/{volumeID}",
    summary: "Read a volume, with a fresh token",
    // The token opens what is in the volume.
    scope: "sandboxes",
    params: byVolume,
    status: 200,
    reply: VolumeWithToken,
    errors: [401, 404],
  },
  deleteVolume: {
    ...common,
    method: "DELETE",
    path: "/volumes/{volumeID}",
    summary: "Delete a volume that no sandbox and no snapshot mounts",
    params: byVolume,
    status: 204,
    errors: [401, 404, 409],
  },
});
