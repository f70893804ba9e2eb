/**
 * Finds sandboxes whose timeout passes while the orchestrator is away; otherwise the orchestrator does it. The time since its last
 * answer is monotonic: a clock that is set meanwhile ends nothing early or late. One timer for the nearest deadline, none without
 * deadlines.
 */

import type { Log } from "../../shared/program/log.ts";

const MAX_TIMER_MS = 2 ** 31 - 1;
const RETRY_MS = 5_000;

export interface ExpiryDeps {
  readonly running: () => readonly { readonly executionId: string; readonly endAt: number }[];
  /** The orchestrator's last answer; the agent's start when there was none yet. */
  readonly lastContact: () => {
    /** Unix milliseconds. */
    readonly last: number;
    /** The same by `elapsed`. */
    readonly at: number;
  };
  readonly graceMs: number;
  /** Called for each sandbox whose deadline passes. */
  readonly end: (executionId: string) => Promise<void>;
  /** Milliseconds that never jump; absent: those of the process. */
  readonly elapsed?: () => number;
  readonly log: Log;
}

export interface Expiry {
  start(): void;
  /** Must be called when a sandbox has started or ended, or its end time has changed. */
  changed(): void;
  stop(): void;
}

export function createExpiry({ running, lastContact, graceMs, end, elapsed, log }: ExpiryDeps): Expiry {
  const time = elapsed ?? (() => performance.now());
  const state = {
    timer: undefined as NodeJS.Timeout | undefined,
    at: Number.POSITIVE_INFINITY,
    started: false,
    stopped: false,
  };

  // Counts from the later of the two, because the orchestrator could act until its last contact.
  const deadline = (endAt: number) => {
    const { last, at } = lastContact();
    return at + Math.max(endAt - last, 0) + graceMs;
  };

  const arm = (at: number) => {
    clearTimeout(state.timer);
    state.at = at;
    if (state.stopped || at === Number.POSITIVE_INFINITY) return;
    state.timer = setTimeout(fire, Math.min(Math.max(at - time(), 1), MAX_TIMER_MS));
    state.timer.unref();
  };

  const fire = () => {
    let next = Number.POSITIVE_INFINITY;
    for (const { executionId, endAt } of running()) {
      const at = deadline(endAt);
      if (at > time()) next = Math.min(next, at);
      else {
        next = Math.min(next, time() + RETRY_MS);
        end(executionId).catch((error: unknown) =>
          log.error({ err: error, executionId }, "could not end an expired sandbox"),
        );
      }
    }
    arm(next);
  };

  const changed = () => {
    if (!state.started) return;
    const nearest = running().reduce((least, { endAt }) => Math.min(least, deadline(endAt)), Number.POSITIVE_INFINITY);
    if (nearest !== state.at) arm(nearest);
  };

  return {
    start() {
      state.started = true;
      changed();
    },
    changed,
    stop() {
      state.stopped = true;
      clearTimeout(state.timer);
    },
  };
}
