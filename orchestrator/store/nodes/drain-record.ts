/** The tables of drains: what the operator asked for, and what became of each sandbox. */

import type { DrainedState } from "../../../shared/api/nodes/drains.ts";
import { number, type RecordOf, type RowOf, table, text } from "../codec.ts";

export const drainTable = table({
  nodeId: text("node_id"),
  begunAt: number("begun_at"),
  /** Undefined: there is none. */
  deadlineAt: number("deadline_at").optional(),
  running: text("running").as<"move" | "finish">(),
  atDeadline: text("at_deadline").as<"stay" | "kill">(),
  /** Sandboxes on their way at a time. */
  atOnce: number("at_once"),
  /** When the operator took the node back. */
  endedAt: number("ended_at").later(),
});

export const drainMoveTable = table({
  nodeId: text("node_id"),
  sandboxId: text("sandbox_id"),
  was: text("was").as<"running" | "paused">(),
  state: text("state").as<DrainedState>(),
  /** The end that the sandbox had when it was paused for the move. */
  endAt: number("end_at"),
  toNode: text("to_node").later(),
  reason: text("reason").later(),
  stallMs: number("stall_ms").later(),
  /** Of the last change. */
  at: number("changed_at"),
});

export type DrainRecord = RecordOf<typeof drainTable>;
export type DrainMoveRecord = RecordOf<typeof drainMoveTable>;

export interface DrainTables {
  readonly drains: RowOf<typeof drainTable>;
  readonly drain_moves: RowOf<typeof drainMoveTable>;
}
