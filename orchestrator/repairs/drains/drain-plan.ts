/** What a drain does next, and what its state is called. Pure: everything follows from the rows, so any orchestrator goes on with it. */

import type { DrainState } from "../../../shared/api/nodes/drains.ts";
import type { ErrorCode } from "../../../shared/http/errors.ts";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import type { DrainMoveRecord, DrainRecord } from "../../store/nodes/drain-record.ts";

/** A sandbox on the node. */
interface OnNode {
  readonly id: string;
  readonly state: SandboxState;
}

export interface DrainSides {
  readonly drain: Pick<DrainRecord, "endedAt" | "deadlineAt" | "running" | "atDeadline" | "atOnce">;
  /** What the records have on the node. */
  readonly here: readonly OnNode[];
  readonly moves: readonly (Pick<DrainMoveRecord, "sandboxId" | "was" | "state" | "at"> & {
    readonly stallMs?: DrainMoveRecord["stallMs"];
  })[];
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
/** One that has stood still in vain rests this many times as long, so that a drain takes a twentieth of its time at most. */
const RESTS_FOR_STALL = 20;
const LONGEST_REST_MS = 600_000;
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
    steps.push(
      ...runs
        .filter(({ id }) => !hasJustFailed(moveOf.get(id), drain, now))
        .map(({ id }): DrainStep => ({ sandboxId: id, do: "kill" })),
    );
  if (drain.endedAt === undefined && !late) {
    const due = ({ id }: OnNode) => {
      const move = moveOf.get(id);
      return move === undefined || move.state !== "stays" || now - move.at >= restOf(move);
    };
    if (drain.running === "move")
      steps.push(...runs.filter(due).map(({ id }): DrainStep => ({ sandboxId: id, do: "move" })));
    const paused = untouched.filter(({ id, state }) => state === "paused" && moveOf.get(id)?.state !== "stored");
    steps.push(...paused.filter(due).map(({ id }): DrainStep => ({ sandboxId: id, do: "carry" })));
  }
  return steps.slice(0, Math.max(0, drain.atOnce - working.size));
}

/** A sandbox that could not be ended at the deadline is ended in the next rounds, not at once: its node may refuse for hours. */
function hasJustFailed(
  move: DrainSides["moves"][number] | undefined,
  { deadlineAt = 0 }: DrainSides["drain"],
  now: number,
): boolean {
  return move?.state === "stays" && move.at >= deadlineAt && now - move.at < BETWEEN_MS;
}

export function drainState({ drain, here, moves, now }: Omit<DrainSides, "working">): DrainState {
  if (drain.endedAt !== undefined) return "stopped";
  const stored = new Set(moves.filter(({ state }) => state === "stored").map(({ sandboxId }) => sandboxId));
  const between = moves.some(({ state }) => state === "moving");
  if (!between && here.every(({ id, state }) => state === "paused" && stored.has(id))) return "done";
  return isLate(drain, now) ? "overdue" : "draining";
}

function restOf({ stallMs = 0 }: DrainSides["moves"][number]): number {
  return Math.max(STAYS_MS, Math.min(LONGEST_REST_MS, RESTS_FOR_STALL * stallMs));
}

/** A node that does not start a sandbox for so long gives it back to the node that it came from. */
export const RETURN_MS = 30_000;
/** A sandbox that its own node does not start for so long stays paused. */
export const SETTLE_MS = 600_000;

/** The same node gives these answers again. */
const FINAL: ReadonlySet<ErrorCode> = new Set([
  "memory_snapshots_unavailable",
  "not_implemented",
  "snapshot_corrupt",
  "snapshot_files_missing",
  "snapshot_incompatible",
  "template_not_found",
]);

/** What follows when a sandbox that the drain has paused was not started again. `settle`: it stays paused where it is. */
export function afterRefusal({
  code,
  mayReturn,
  refusedForMs,
}: {
  readonly code: ErrorCode;
  /** It is on another node, and its own one can start it. */
  readonly mayReturn: boolean;
  readonly refusedForMs: number;
}): "later" | "return" | "settle" {
  const isFinal = FINAL.has(code);
  if (mayReturn) return isFinal || refusedForMs >= RETURN_MS ? "return" : "later";
  return isFinal || refusedForMs >= SETTLE_MS ? "settle" : "later";
}

/** Why a sandbox that the drain has not begun with is still on the node. */
export function whyWaiting(state: SandboxState, { drain, now }: Pick<DrainSides, "drain" | "now">): string {
  if (drain.endedAt !== undefined) return "the drain has ended before its turn";
  const isPaused = state === "paused";
  const late = isLate(drain, now);
  if (late && drain.atDeadline === "kill" && !isPaused) return "the deadline has passed: it is about to be ended";
  if (!isPaused && drain.running === "finish") return "it runs until its end";
  if (late) return "the deadline has passed before its turn";
  if (!isPaused && state !== "running") return `it is ${state}: its turn comes after that`;
  return `its turn comes: ${drain.atOnce} are moved at a time`;
}

function isLate({ deadlineAt }: DrainSides["drain"], now: number): boolean {
  return deadlineAt !== undefined && now >= deadlineAt;
}
