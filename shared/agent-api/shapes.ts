/**
 * Shapes that several bodies of the orchestrator–agent contract share. Objects are closed, because an old agent must
 * refuse a new rule rather than ignore it.
 */

import { type Static, Type } from "typebox";

export const closed = { additionalProperties: false } as const;
export const strings = Type.Record(Type.String(), Type.String());

/** An id, or the address of a sandbox, as a node reports it: those that an orchestrator makes are shorter. */
export const reported = Type.String({ maxLength: 128 });
/** The address of a program. */
export const address = Type.String({ maxLength: 2_048 });

/** Unix milliseconds, everywhere on this contract. */
export const time = Type.Integer({ minimum: 0 });

export const Resources = Type.Object(
  {
    cpuCount: Type.Integer({ minimum: 1 }),
    memoryMB: Type.Integer({ minimum: 128 }),
    diskSizeMB: Type.Integer({ minimum: 0 }),
  },
  closed,
);
export type Resources = Static<typeof Resources>;

/** The build that a container is made from; together with the resources also the key of a warm pool. */
export const BuildReference = Type.Object(
  { templateId: Type.String(), buildId: Type.String(), image: Type.String() },
  closed,
);
export type BuildReference = Static<typeof BuildReference>;

/** An id made by the orchestrator for one snapshot of a sandbox; a repeated request with the same id is the same snapshot. */
export const SnapshotId = Type.String({ format: "uuid" });
