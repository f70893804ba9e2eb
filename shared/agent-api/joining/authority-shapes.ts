/** How machines that have joined learn that the platform's authority is being replaced, and say how far they are. */

import { type Static, Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { closed } from "../shapes.ts";

/** More than two are never trusted at a time. */
const MOST = 4;
const Digest = Type.String({ pattern: "^[0-9a-f]{64}$" });

/** Digests of what the machine trusts, and of the authority that has signed its certificate. */
const Asked = Type.Object({ trusted: Type.Array(Digest, { maxItems: MOST }), issuer: Digest }, closed);

const Told = Type.Object({
  /** PEM. */
  trusted: Type.Array(Type.String({ maxLength: 8_192 }), { minItems: 1, maxItems: MOST }),
  /** Digest of the one that signs: a certificate of another one has to be renewed. */
  issuer: Digest,
});
export type Told = Static<typeof Told>;

const route = {
  method: "POST",
  access: "node",
  noStore: true,
  body: Asked,
  status: 200,
  reply: Told,
  errors: [401, 403],
} as const;

/** For nodes, over the certificate that they have. */
export const nodeAuthorityApi = contract({
  nodeAuthorities: {
    ...route,
    path: "/internal/authorities",
    summary: "The authorities that a node has to trust",
    tag: "Nodes",
  },
});

export const edgeAuthorityApi = contract({
  edgeAuthorities: {
    ...route,
    path: "/internal/edge/authorities",
    summary: "The authorities that an edge has to trust",
    tag: "Edge",
  },
});
