/** The life of a sandbox as a table of legal moves. Pure. */

import { type Static, Type } from "typebox";

export const SandboxState = Type.Enum([
  "starting",
  "running",
  "pausing",
  "paused",
  "snapshotting",
  "rewinding",
  "killing",
  "gone",
]);
export type SandboxState = Static<typeof SandboxState>;

/**
 * `gone` is kept as history and never left. `starting` from `paused` is a resume; `paused` from `starting` is a resume
 * that failed and left the snapshot as it was. `rewinding` goes back to where it came from, `running` or `paused`, when the
 * rewind fails.
 */
const moves: Readonly<Record<SandboxState, readonly SandboxState[]>> = {
  starting: ["running", "paused", "killing", "gone"],
  running: ["pausing", "snapshotting", "rewinding", "killing", "gone"],
  pausing: ["paused", "running", "killing", "gone"],
  paused: ["starting", "rewinding", "killing", "gone"],
  snapshotting: ["running", "killing", "gone"],
  rewinding: ["running", "paused", "killing", "gone"],
  killing: ["gone"],
  gone: [],
};

export function mayMove(from: SandboxState, to: SandboxState): boolean {
  return moves[from].includes(to);
}

/** The states from which `to` may be reached: the condition of the compare-and-set that performs the move. */
export function statesBefore(to: SandboxState): readonly SandboxState[] {
  return (Object.keys(moves) as SandboxState[]).filter((from) => mayMove(from, to));
}

/**
 * The state that API reads show: `paused` already for a sandbox that is being paused, and still for one that is being
 * resumed (`wasPaused`: it starts from its own snapshot). One that is being rewound shows as `running`, which it will be. A
 * killed sandbox is not shown.
 */
export function shownState(state: SandboxState, wasPaused = false): "running" | "paused" | undefined {
  switch (state) {
    case "running":
    case "snapshotting":
    case "rewinding":
      return "running";
    case "pausing":
    case "paused":
      return "paused";
    case "starting":
      return wasPaused ? "paused" : undefined;
    case "killing":
    case "gone":
      return undefined;
  }
}
