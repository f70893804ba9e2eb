/** Operators' routes: the replacement of the authority that signs the certificates between machines. */

import { type Static, Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { nullable, Timestamp } from "../common.ts";

export const AuthorityRotation = Type.Object({
  state: Type.Enum(["single", "trusting", "signing"], {
    description:
      "`single`: nothing is replaced; `trusting`: both authorities are trusted, and the former one signs; `signing`: the new one signs, and certificates of the former one are renewed",
  }),
  digest: Type.String({ description: "Of the authority that signs: SHA-256 of its public key" }),
  former: nullable(Type.String({ description: "Of the one that is replaced" })),
  next: nullable(Type.String({ description: "Of the one that takes its place" })),
  begunAt: nullable(Timestamp),
  waitsFor: Type.Array(
    Type.Object({
      kind: Type.Enum(["node", "edge", "orchestrators"]),
      id: Type.String({ description: "Empty for the orchestrators" }),
      reason: Type.String(),
    }),
    {
      description:
        "What the next step waits for. A machine that was silent for 73 hours, and whose certificate has ended, is not waited for",
    },
  ),
});
export type AuthorityRotation = Static<typeof AuthorityRotation>;

const route = { tag: "Admin", access: "admin", path: "/admin/rotation/authority", reply: AuthorityRotation } as const;

export const authorityRotationApi = contract({
  readAuthorityRotation: {
    ...route,
    method: "GET",
    summary: "How far the replacement of the platform's authority is",
    status: 200,
    errors: [400, 401],
  },
  replaceAuthority: {
    ...route,
    method: "POST",
    summary: "Begin to replace the platform's authority; while that is under way it only says how far it is",
    status: 202,
    errors: [400, 401, 409],
  },
});
