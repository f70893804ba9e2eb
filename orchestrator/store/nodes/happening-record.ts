/** The tables of what happened to nodes, and of the starts on them that each orchestrator has asked for. */

import type { NodeEventKind } from "../../../shared/api/nodes/node-events.ts";
import type { ErrorCode } from "../../../shared/http/errors.ts";
import { json, type NewRecordOf, number, type RecordOf, type RowOf, table, text } from "../codec.ts";

export const nodeEventTable = table(
  {
    nodeId: text("node_id"),
    at: number("at"),
    kind: text("kind").as<NodeEventKind>(),
    detail: text("detail").later(),
  },
  /** In the order in which those of a node were added. */
  { id: text("id") },
);

/** Why a start failed on a node. */
export interface StartError {
  readonly at: number;
  readonly code: ErrorCode;
  readonly message: string;
}

export const nodeStartsTable = table(
  {
    nodeId: text("node_id"),
    succeeded: number("succeeded"),
    failed: number("failed"),
    /** The newest first. */
    errors: json("errors").as<readonly StartError[]>(),
  },
  { owner: text("owner"), at: number("at") },
);

export type NodeEventRecord = RecordOf<typeof nodeEventTable>;
export type NewNodeEvent = Omit<NewRecordOf<typeof nodeEventTable>, "id">;
export type NodeStarts = RecordOf<typeof nodeStartsTable>;

export interface HappeningTables {
  readonly node_events: RowOf<typeof nodeEventTable>;
  readonly node_starts: RowOf<typeof nodeStartsTable>;
}
