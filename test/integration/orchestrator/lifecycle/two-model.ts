/**
 * The state machine of a sandbox as a client sees it, who asks two orchestrators of which each may die at any moment: the
 * states that a sandbox may be in after the answers so far. Pure.
 */

export type State = "running" | "paused" | "gone";
export type Work = "pause" | "connect" | "kill" | "expire";
/** Undefined: no answer, or one that leaves open what happened. */
type Status = number | undefined;

/** The states that are possible after the answer, if the sandbox was in `state`. Empty: no such answer is possible then. */
function after(state: State, work: Work, status: Status): readonly State[] {
  if (status === undefined || status >= 500) return after500(state, work);
  // Only what runs has a timeout.
  if (status === 404) return state === "gone" || (state === "paused" && work === "expire") ? [state] : [];
  // It was busy with another transition, or is in the wrong state: nothing was done.
  if (status === 409) return [state];
  if (status >= 300 || state === "gone") return [];
  switch (work) {
    case "pause":
      return state === "running" ? ["paused"] : [];
    case "connect":
      return ["running"];
    case "kill":
      return ["gone"];
    case "expire":
      return state === "running" ? ["running", "gone"] : [];
  }
}

function after500(state: State, work: Work): readonly State[] {
  if (state === "gone") return ["gone"];
  if (work === "pause") return state === "running" ? ["running", "paused"] : [state];
  if (work === "connect") return state === "paused" ? ["paused", "running"] : [state];
  return state === "paused" && work === "expire" ? [state] : [state, "gone"];
}

export interface Done {
  readonly work: Work;
  readonly status: Status;
}

/**
 * The possible states after works of which each may have come before the others, or have shared another's outcome. Empty: the
 * answers contradict every order.
 */
export function afterAll(possible: ReadonlySet<State>, done: readonly Done[]): Set<State> {
  if (done.length === 0) return new Set(possible);
  const states = new Set<State>();
  done.forEach(({ work, status }, index) => {
    const rest = done.filter((_, other) => other !== index);
    const next = new Set([...possible].flatMap((state) => after(state, work, status)));
    if (next.size > 0) for (const state of afterAll(next, rest)) states.add(state);
    // Two with one aim may share one outcome.
    const shared = rest.some((other) => other.work === work && other.status === status);
    if (shared) for (const state of afterAll(possible, rest)) states.add(state);
  });
  return states;
}

/** Whether it is still open what the works have done, which may be finished later. */
export function isOpen(done: readonly Done[]): boolean {
  return done.some(({ status }) => status === undefined || status >= 500);
}
