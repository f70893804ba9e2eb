/** How a machine becomes a node: the one route of the orchestrator that a machine without a certificate may call. */

import { Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { closed, strings, time } from "../shapes.ts";

const nodeId = Type.String({ pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" });
const address = Type.String({ pattern: "^https://[^/]+$", maxLength: 1024 });

const JoinRequest = Type.Object(
  {
    tokenId: Type.String({ minLength: 1, maxLength: 64 }),
    secret: Type.String({ minLength: 1, maxLength: 64 }),
    nodeId,
    /** PKCS #10, PEM: the key stays on the machine. */
    request: Type.String({ minLength: 1, maxLength: 4096 }),
    /** Agent API and node proxy, as the orchestrator reaches them. */
    apiUrl: address,
    proxyUrl: address,
    labels: strings,
    /** The machine's clock. */
    at: time,
    version: Type.String({ maxLength: 64 }),
    /** Of the node that has this name already, and no key (`join-proof.ts`). */
    proof: Type.Optional(Type.String({ maxLength: 64 })),
  },
  closed,
);

const Joined = Type.Object({
  /** PEM. */
  certificate: Type.String(),
  /** The node's two tokens, as its agent's settings name them. */
  nodeToken: Type.String(),
  orchestratorToken: Type.String(),
});

const Renewal = Type.Object(
  {
    /** PKCS #10, PEM, of the key that the node joined with. */
    request: Type.String({ minLength: 1, maxLength: 4096 }),
  },
  closed,
);

/** For nodes that have joined, over the certificate that they have. */
export const memberApi = contract({
  renew: {
    method: "POST",
    path: "/internal/renew",
    summary: "Change a node's certificate for a fresh one of the same key",
    tag: "Nodes",
    access: "node",
    noStore: true,
    body: Renewal,
    status: 200,
    reply: Joined,
    errors: [400, 401, 403],
  },
});

export const joinApi = contract({
  join: {
    method: "POST",
    path: "/internal/join",
    summary: "Make a machine a node, with a join token",
    tag: "Nodes",
    access: "none",
    noStore: true,
    body: JoinRequest,
    status: 200,
    reply: Joined,
    errors: [400, 403, 409],
  },
});
