/** The rows of operations, as Kysely sees them, and what an operation is for. */

import { AppError } from "../../../shared/http/errors.ts";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";

/** The stable state that an operation leads to, or its kind where it ends in the state that it began in. */
export type Aim = Extract<SandboxState, "running" | "paused" | "gone" | "snapshotting" | "rewinding"> | "network";

export interface OperationRow {
  readonly id: string;
  readonly sandbox_id: string;
  readonly aim: Aim;
  /** Id of an orchestrator; empty: nobody works on it, and the next caller takes it over. */
  readonly owner: string;
  readonly epoch: number;
  readonly begun_at: number;
  readonly ended_at: number | null;
  /** Why it failed, as JSON: for callers that wait for it at other orchestrators. */
  readonly failure: string | null;
}

/** The aim of the operation that a move to this state begins; undefined: the move ends one. */
export const AIMS: { readonly [State in SandboxState]: Aim | undefined } = {
  starting: "running",
  pausing: "paused",
  snapshotting: "snapshotting",
  rewinding: "rewinding",
  killing: "gone",
  running: undefined,
  paused: undefined,
  gone: undefined,
};

/** A kill does not wait for these: they find the row moved, and stop. */
export function yieldsToKill(aim: Aim): boolean {
  return aim === "running" || aim === "network" || aim === "rewinding";
}

/** Another orchestrator has taken the operation over: the transaction must change nothing. */
export class Overtaken extends Error {}

/** Another orchestrator works on the sandbox: the transaction changed nothing, and its caller waits. */
export class UnderWay extends AppError {
  constructor() {
    super("conflict", "the sandbox is busy with another transition; try again");
  }
}
