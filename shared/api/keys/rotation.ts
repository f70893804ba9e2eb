/** What still uses earlier tokens, seeds and keys, for operators who replace them. */

import { type Static, Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { nullable } from "../common.ts";
import { AuthorityRotation } from "./authority-rotation.ts";

const previous = Type.Integer({ description: "Earlier ones that the settings still name" });
const removable = Type.Boolean({ description: "There are earlier ones, and nothing uses them: remove them" });

export const Rotation = Type.Object({
  nodeKey: Type.Object({
    previous,
    nodes: Type.Array(Type.String(), { description: "Nodes whose tokens an earlier key made" }),
    removable,
  }),
  metricsToken: Type.Object({ previous }),
  sandboxSeed: Type.Object({
    previous,
    sandboxes: Type.Integer({ description: "Running and paused sandboxes whose tokens an earlier seed made" }),
    removable,
  }),
  encryptionKey: Type.Object({
    previous,
    values: Type.Integer({ description: "Sealed values that are not under the current key yet" }),
    unreadable: Type.Integer({ description: "Of these, values that open with none of the keys" }),
    removable,
  }),
  authority: nullable(AuthorityRotation),
});
export type Rotation = Static<typeof Rotation>;

export const rotationApi = contract({
  readRotation: {
    method: "GET",
    path: "/admin/rotation",
    summary: "Which earlier tokens, seeds and keys are still in use",
    tag: "Admin",
    access: "admin",
    status: 200,
    reply: Rotation,
    errors: [401],
  },
});
