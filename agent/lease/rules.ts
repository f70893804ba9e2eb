/** When the node's sandboxes must stand still, and which may go on. Pure. */

/** The right to let sandboxes run, as an orchestrator's last answer gave it. */
export interface Grant {
  /** When the report was sent that the answer acknowledges: milliseconds since the start of the kernel. */
  readonly sentAt: number;
  /** For so long from then on no orchestrator counts the node as lost. */
  readonly forMs: number;
}

export interface LeaseState {
  /** If it is undefined, no other node can take over this node's sandboxes, and they run without a limit. */
  readonly grant: Grant | undefined;
  /** Executions that were frozen, and that no orchestrator has named current since. */
  readonly frozen: ReadonlySet<string>;
}

export interface Answer {
  readonly sentAt: number;
  /** Executions that the acknowledged report named. */
  readonly reported: readonly string[];
  /** Of those: the ones that have ended by their records, or have none. */
  readonly notCurrent: readonly string[];
  /** Undefined: the answer limits nothing. */
  readonly forMs: number | undefined;
}

/** @param at milliseconds since the start of the kernel */
export function hasLapsed(grant: Grant | undefined, at: number): boolean {
  return grant !== undefined && at - grant.sentAt >= grant.forMs;
}

/**
 * The state at a moment: after the lapse every execution is frozen, also one that has just begun.
 * @param live all executions of this node, in whichever stage
 */
export function stateAt({ grant, frozen }: LeaseState, live: readonly string[], at: number): LeaseState {
  return { grant, frozen: new Set(hasLapsed(grant, at) ? live : live.filter((id) => frozen.has(id))) };
}

/** An answer that comes after its own lease has lapsed lets nothing go on: it says what was true too long ago. */
export function afterAnswer({ frozen }: LeaseState, answer: Answer, at: number): LeaseState {
  const { sentAt, forMs } = answer;
  const grant = forMs === undefined ? undefined : { sentAt, forMs };
  if (hasLapsed(grant, at)) return { grant, frozen };
  const notCurrent = new Set(answer.notCurrent);
  const current = new Set(answer.reported.filter((id) => !notCurrent.has(id)));
  return { grant, frozen: new Set([...frozen].filter((id) => !current.has(id))) };
}
