/** Volumes on a node: directories that outlive sandboxes, on a file system of their own each. */

import { type Static, Type } from "typebox";
import { closed } from "./shapes.ts";

/** A volume that a sandbox sees at a path. The node must have it already. */
export const VolumeMount = Type.Object(
  {
    volumeId: Type.String({ format: "uuid" }),
    path: Type.String({ pattern: "^/", maxLength: 4096 }),
  },
  closed,
);
export type VolumeMount = Static<typeof VolumeMount>;

export const VolumeBody = Type.Object(
  {
    /** What programs and uploads may write; exact, and never changed. */
    sizeMb: Type.Integer({ minimum: 64, maximum: 16_777_216 }),
  },
  closed,
);

/** A volume that a node keeps, whether the orchestrator has a record of it or not. */
export const KeptVolume = Type.Object(
  {
    volumeId: Type.String({ format: "uuid" }),
    sizeMb: Type.Integer({ minimum: 0 }),
    usedBytes: Type.Integer({ minimum: 0 }),
  },
  closed,
);
export type KeptVolume = Static<typeof KeptVolume>;

/** Time limit of one request for the content of a volume, waiting for its turn not included. */
export const CONTENT_WAIT_MS = 30_000;
