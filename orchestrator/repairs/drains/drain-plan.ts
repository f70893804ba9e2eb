/** What a drain does next, and what its state is called. Pure: everything follows from the rows, so any orchestrator goes on with it. */

import type { DrainState } from "../../../shared/api/nodes/drains.ts";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import type { DrainMoveRecord, DrainRecord } from "../../store/nodes/drain-record.ts";

/** A sandbox on the node. */
export interface OnNode {
  readonly id: string;
  readonly state: SandboxState;
}

export interface DrainSides {
  readonly drain: Pick<DrainRecord, "endedAt" | "deadlineAt" | "running" | "atDeadline" | "atOnce">;
  /** What the records have on the node. */
  readonly here: readonly OnNode[];
  readonly moves: readonly Pick<DrainMoveRecord, "sandboxId" | "was" | "state" | "at">[];
  /** Sandboxes that this process works on. */
  readonly working: ReadonlySet<string>;
  readonly now: number;
}

/** `goOn`: an orchestrator that has ended began it, or its last step failed. */
export interface DrainStep {
  readonly sandboxId: string;
  readonly do: "move" | "carry" | "kill" | "goOn";
}

/** What stays is tried again after this time: another node may have room, and what bound it may be gone. */
export const STAYS_MS = 30_000;
/** A sandbox between two nodes whose last step failed is tried again soon: it does not run. */
export const BETWEEN_MS = 1_000;

/** The steps to begin now: never more than `atOnce` with those under way. What is between two nodes comes first. */
export function planDrain({ drain, here, moves, working, now }: DrainSides): DrainStep[] {
  const moveOf = new Map(moves.map((move) => [move.sandboxId, move]));
  const isFree = ({ id }: OnNode) => !working.has(id);
  const between = moves
    .filter(({ sandboxId, state, at }) => state === "moving" && !working.has(sandboxId) && now - at >= BETWEEN_MS)
    .map(({ sandboxId }): DrainStep => ({ sandboxId, do: "goOn" }));
  const late = isLate(drain, now);
  const untouched = here.filter((each) => isFree(each) && moveOf.get(each.id)?.state !== "moving");
  const runs = untouched.filter(({ state }) => state === "running");
  const steps: DrainStep[] = [...between];
  if (drain.endedAt === undefined && late && drain.atDeadline === "kill")
    steps.push(...runs.map(({ id }): DrainStep => ({ sandboxId: id, do: "kill" })));
  if (drain.endedAt === undefined && !late) {
    const due = ({ id }: OnNode) => {
      const move = moveOf.get(id);
      return move === undefined || move.state !== "stays" || now - move.at >= STAYS_MS;
    };
    if (drain.running === "move")
      steps.push(...runs.filter(due).map(({ id }): DrainStep => ({ sandboxId: id, do: "move" })));
    const paused = untouched.filter(({ id, state }) => state === "paused" && moveOf.get(id)?.state !== "stored");
    steps.push(...paused.filter(due).map(({ id }): DrainStep => ({ sandboxId: id, do: "carry" })));
  }
  return steps.slice(0, Math.max(0, drain.atOnce - working.size));
}

export function drainState({ drain, here, moves, now }: Omit<DrainSides, "working">): DrainState {
  if (drain.endedAt !== undefined) return "stopped";
  const stored = new Set(moves.filter(({ state }) => state === "stored").map(({ sandboxId }) => sandboxId));
  const between = moves.some(({ state }) => state === "moving");
  if (!between && here.every(({ id, state }) => state === "paused" && stored.has(id))) return "done";
  return isLate(drain, now) ? "overdue" : "draining";
}

function isLate({ deadlineAt }: DrainSides["drain"], now: number): boolean {
  return deadlineAt !== undefined && now >= deadlineAt;
}
