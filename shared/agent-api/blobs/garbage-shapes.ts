/** What a node stores that none of its records references. */

import { type Static, Type } from "typebox";
import { closed } from "../shapes.ts";

export const Garbage = Type.Object(
  {
    /** Memory images; `bytes` where the node knows them. */
    memory: Type.Array(
      Type.Object({ snapshotId: Type.String(), bytes: Type.Optional(Type.Integer({ minimum: 0 })) }, closed),
    ),
    images: Type.Array(Type.Object({ image: Type.String(), snapshotId: Type.String() }, closed)),
    /** Names of images of builds. */
    buildImages: Type.Array(Type.String()),
    /** Cached layers beyond the budget of the build cache. */
    layers: Type.Array(Type.Object({ image: Type.String(), bytes: Type.Integer({ minimum: 0 }) }, closed)),
  },
  closed,
);
export type Garbage = Static<typeof Garbage>;
