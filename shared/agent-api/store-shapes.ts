/** The store that a node serves: how an orchestrator names its own, what a node remembers, and what a store adopts from a node. */

import { type Static, Type } from "typebox";
import { LiveExecution } from "./sandbox-shapes.ts";
import { BuildReference, closed, Resources, time } from "./shapes.ts";
import { StoredSnapshot } from "./snapshot-shapes.ts";

const uuid = Type.String({ format: "uuid" });

/** A point in the life of a store. Each start of an orchestrator is an opening, whose mark grows while it runs; several are beside each other. */
export const StoreMark = Type.Object({ storeId: uuid, opening: uuid, mark: Type.Integer({ minimum: 0 }) }, closed);
export type StoreMark = Static<typeof StoreMark>;

/** The store of the orchestrator that answers a report. */
export const OfferedStore = Type.Object(
  {
    ...StoreMark.properties,
    /** The last durable mark of the opening that the node named; absent: this store never had that opening. */
    reached: Type.Optional(Type.Integer({ minimum: 0 })),
    /** How many of the reported sandboxes it has a record of. */
    knows: Type.Integer({ minimum: 0 }),
    /** Openings of the other orchestrators that use the database now, and may give the node work. Absent: there is no other. */
    beside: Type.Optional(Type.Array(uuid)),
  },
  closed,
);
export type OfferedStore = Static<typeof OfferedStore>;

/** What a node knows of a sandbox besides its state, so that a store without its record can adopt it. */
const known = {
  projectId: Type.Optional(Type.String()),
  build: BuildReference,
  resources: Resources,
  /** The orchestrator's own row of the sandbox, as of its create; absent: started by an earlier version. */
  record: Type.Optional(Type.String()),
};

const HeldSnapshot = Type.Object({ since: time, until: time, reason: Type.String({ maxLength: 200 }) }, closed);

/** Everything that a node keeps for sandboxes. */
export const Holdings = Type.Object(
  {
    served: Type.Optional(StoreMark),
    /** Why the node refuses the orchestrator that asks last; absent: it serves that one. */
    refusal: Type.Optional(Type.String()),
    executions: Type.Array(
      Type.Object(
        {
          ...LiveExecution.properties,
          ...known,
          onTimeout: Type.Enum(["kill", "pause"]),
          onTimeoutMemory: Type.Boolean(),
        },
        closed,
      ),
    ),
    snapshots: Type.Array(
      Type.Object({ ...StoredSnapshot.properties, ...known, held: Type.Optional(HeldSnapshot) }, closed),
    ),
  },
  closed,
);
export type Holdings = Static<typeof Holdings>;

/** The request header in which an orchestrator names its store to a node: `<store id>.<opening>`. */
export const STORE_HEADER = "x-svc-store";
