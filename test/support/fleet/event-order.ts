/** Judges the lifecycle events of sandboxes: each transition once and in order. Pure. */

export interface LifecycleEvent {
  readonly id: string;
  readonly type: string;
  readonly sandboxId: string;
  readonly timestamp: string;
}

interface Now {
  readonly running: ReadonlySet<string>;
  readonly paused: ReadonlySet<string>;
}

type State = "none" | "running" | "paused" | "ended";

/** Where each event leads from where; events of other types change no state. */
const MOVES: Readonly<Record<string, { readonly from: readonly State[]; readonly to: State }>> = {
  "sandbox.lifecycle.created": { from: ["none"], to: "running" },
  "sandbox.lifecycle.paused": { from: ["running"], to: "paused" },
  "sandbox.lifecycle.resumed": { from: ["paused"], to: "running" },
  // One whose start was cut short has no other event.
  "sandbox.lifecycle.killed": { from: ["none", "running", "paused"], to: "ended" },
};

/**
 * Returns one sentence for each sandbox whose events are no life that leads to where it is now.
 * @param events the oldest first
 * @param now the sandboxes that are listed; all others have ended
 */
export function findEventProblems(events: readonly LifecycleEvent[], now: Now): readonly string[] {
  const problems: string[] = [];
  const lives = new Map<string, LifecycleEvent[]>();
  const seen = new Set<string>();
  for (const event of events) {
    if (seen.has(event.id)) problems.push(`event ${event.id} is told twice`);
    seen.add(event.id);
    lives.set(event.sandboxId, [...(lives.get(event.sandboxId) ?? []), event]);
  }
  for (const [id, life] of lives) {
    const said = life.map(({ type }) => type.replace("sandbox.lifecycle.", "")).join(", ");
    const end = lastState(life);
    const is: State = now.running.has(id) ? "running" : now.paused.has(id) ? "paused" : "ended";
    if (end === undefined) problems.push(`the events of ${id} are out of order: ${said}`);
    else if (end !== is) problems.push(`the events of ${id} say ${end}, and it is ${is}: ${said}`);
    if (life.some((event, index) => index > 0 && event.timestamp < (life[index - 1]?.timestamp ?? ""))) {
      problems.push(`the times of the events of ${id} go back: ${said}`);
    }
  }
  for (const id of [...now.running, ...now.paused]) if (!lives.has(id)) problems.push(`${id} has no events`);
  return problems;
}

/** Undefined: one of them does not follow from what was before. */
function lastState(life: readonly LifecycleEvent[]): State | undefined {
  let state: State = "none";
  for (const { type } of life) {
    const move = MOVES[type];
    if (move === undefined) continue;
    if (!move.from.includes(state)) return undefined;
    state = move.to;
  }
  return state;
}
