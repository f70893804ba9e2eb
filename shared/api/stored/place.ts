/** Where something stored is, as the API shows it. */

import { type Static, Type } from "typebox";
import { nullable } from "../common.ts";

export const Upload = Type.Object({
  doneBytes: Type.Integer(),
  totalBytes: Type.Integer({ description: "0 until its node has read it" }),
  failure: nullable(
    Type.String({ description: "To operators why the last try failed, to others that it did; it is tried again" }),
  ),
});
export type Upload = Static<typeof Upload>;

export const Place = Type.Object(
  {
    nodeID: nullable(Type.String({ description: "The node that has it" })),
    inStore: Type.Boolean({ description: "It is in the blob store too" }),
    upload: nullable(Upload),
    ifNodeIsLost: Type.String({ description: "What the loss of that node means for it, for people" }),
  },
  { description: "Where it is stored; of this platform alone" },
);
export type Place = Static<typeof Place>;
