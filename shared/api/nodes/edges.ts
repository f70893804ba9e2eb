/** Routes for operators: the edges that have joined. */

import { Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { Timestamp } from "../common.ts";

const admin = { tag: "Admin", access: "admin" } as const;

export const edgesApi = contract({
  listEdges: {
    ...admin,
    method: "GET",
    path: "/admin/edges",
    summary: "List the edges that have joined",
    status: 200,
    reply: Type.Array(Type.Object({ id: Type.String(), joinedAt: Timestamp })),
    errors: [401],
  },
  removeEdge: {
    ...admin,
    method: "DELETE",
    path: "/admin/edges/{edgeID}",
    summary: "Remove an edge: its certificate opens nothing from then on, and it gets no more routes",
    params: Type.Object({ edgeID: Type.String({ minLength: 1, maxLength: 64 }) }),
    status: 204,
    errors: [401, 404],
  },
});
