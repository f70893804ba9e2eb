/** The life of a template build as a table of legal moves. Pure. */

export type BuildStatus = "waiting" | "building" | "ready" | "error";

/** `waiting`: requested, not started. `building` includes the time in the queue. `ready` and `error` are final. */
const moves: Readonly<Record<BuildStatus, readonly BuildStatus[]>> = {
  waiting: ["building"],
  building: ["ready", "error"],
  ready: [],
  error: [],
};

export function mayBecome(from: BuildStatus, to: BuildStatus): boolean {
  return moves[from].includes(to);
}

/** The statuses from which `to` may be reached: the condition of the statement that performs the move. */
export function statusesBefore(to: BuildStatus): readonly BuildStatus[] {
  return (Object.keys(moves) as BuildStatus[]).filter((from) => mayBecome(from, to));
}

/** Whether the build has ended, so that its status cannot change any more. */
export function isFinished(status: BuildStatus): boolean {
  return moves[status].length === 0;
}
