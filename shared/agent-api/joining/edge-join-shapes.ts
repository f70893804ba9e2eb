/** How a machine becomes an edge of a platform, and how it keeps its certificate. */

import { Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { closed, time } from "../shapes.ts";

const request = Type.String({ minLength: 1, maxLength: 4096 });

/** PEM. */
const Certified = Type.Object({ certificate: Type.String() });

export const edgeJoinApi = contract({
  joinEdge: {
    method: "POST",
    path: "/internal/join-edge",
    summary: "Make a machine an edge, with a join token",
    tag: "Edge",
    access: "none",
    noStore: true,
    body: Type.Object(
      {
        tokenId: Type.String({ minLength: 1, maxLength: 64 }),
        secret: Type.String({ minLength: 1, maxLength: 64 }),
        edgeId: Type.String({ pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" }),
        /** PKCS #10, PEM: the key stays on the machine. */
        request,
        /** The machine's clock. */
        at: time,
      },
      closed,
    ),
    status: 200,
    reply: Certified,
    errors: [400, 403, 409],
  },
});

/** For edges that have joined, over the certificate that they have. */
export const edgeMemberApi = contract({
  renewEdge: {
    method: "POST",
    path: "/internal/edge/renew",
    summary: "Change an edge's certificate for a fresh one of the same key",
    tag: "Edge",
    access: "node",
    noStore: true,
    body: Type.Object({ request }, closed),
    status: 200,
    reply: Certified,
    errors: [400, 401, 403],
  },
});
