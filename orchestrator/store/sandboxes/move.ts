/** A change of a sandbox's state, and the conditions under which it is made. */

import type { AppError } from "../../../shared/http/errors.ts";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import type { StartLimits } from "../projects/limits.ts";
import type { Room } from "../storage/quota.ts";
import type { MoveSet } from "./record.ts";

/** Conditions of a move beyond the state: the execution, its node, its end, its snapshot, the project's limit. */
export interface MoveIf {
  readonly executionId?: string;
  readonly nodeId?: string;
  readonly endAtMost?: number;
  /** The snapshot that a paused sandbox resumes from: a pause in between makes another one. */
  readonly snapshotId?: string;
  /** The project may start the sandbox. Part of the statement, so that a burst cannot exceed a limit. */
  readonly limit?: StartLimits;
  /** The project may have one more snapshot: fewer than `most`, where that is given. */
  readonly snapshots?: { readonly most: number | undefined };
  /** The new snapshot fits the quota of the sandbox's project: part of the statement, as the limit is. */
  readonly room?: Room;
  /** The states to move from, where the table of moves allows more. */
  readonly from?: readonly SandboxState[];
}

/** A change of a sandbox's state. */
export interface Move {
  readonly id: string;
  readonly to: SandboxState;
  readonly when?: MoveIf;
  readonly set?: MoveSet;
  /** Why the transition that the move ends has failed: callers at other orchestrators get it too. */
  readonly failure?: AppError;
}

/** Whether the conditions read other rows of the project: limits and quotas. */
export function countsOthers({ limit, snapshots, room }: MoveIf): boolean {
  return limit !== undefined || snapshots !== undefined || room !== undefined;
}
