/** Routes for operators: the tokens with which machines join the platform. */

import { Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { nullable, Timestamp } from "../common.ts";

const kind = (description: string) => Type.Enum(["node", "edge"], { description });

const joinToken = {
  id: Type.String(),
  kind: kind("What a machine becomes with it"),
  createdAt: Timestamp,
  expiresAt: Timestamp,
  usedAt: nullable(Timestamp),
  nodeID: nullable(Type.String({ description: "The node that has joined with it" })),
  edgeID: nullable(Type.String({ description: "The edge that has joined with it" })),
  revokedAt: nullable(Timestamp),
};

const admin = { tag: "Admin", access: "admin" } as const;

export const joinTokenApi = contract({
  createJoinToken: {
    ...admin,
    method: "POST",
    path: "/admin/join-tokens",
    summary: "Make a token with which one machine can join as a node or an edge, within an hour",
    noStore: true,
    body: Type.Object({ kind: Type.Optional(kind("What the machine becomes; node, where it is absent")) }),
    optionalBody: true,
    status: 201,
    reply: Type.Object({
      ...joinToken,
      token: Type.String({ description: "Shown only here" }),
    }),
    errors: [400, 401],
  },
  listJoinTokens: {
    ...admin,
    method: "GET",
    path: "/admin/join-tokens",
    summary: "List join tokens, the newest first; those that ended a month ago are not listed",
    status: 200,
    reply: Type.Array(Type.Object(joinToken)),
    errors: [401],
  },
  revokeJoinToken: {
    ...admin,
    method: "DELETE",
    path: "/admin/join-tokens/{joinTokenID}",
    summary: "Revoke a join token, at once; a machine that has joined with it stays",
    params: Type.Object({ joinTokenID: Type.String({ minLength: 1, maxLength: 64 }) }),
    status: 204,
    errors: [401, 404],
  },
});
