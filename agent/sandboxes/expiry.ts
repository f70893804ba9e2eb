/**
 * Finds sandboxes whose timeout passes while the orchestrator is away; otherwise the orchestrator does it. One timer for the
 * nearest deadline, none without deadlines.
 */

import type { Log } from "../../shared/program/log.ts";

const MAX_TIMER_MS = 2 ** 31 - 1;
const RETRY_MS = 5_000;

export interface ExpiryDeps {
  readonly running: () => readonly { readonly executionId: string; readonly endAt: number }[];
  /** Unix milliseconds of the orchestrator's last answer; the agent's start when there was none yet. */
  readonly lastContact: () => number;
  readonly graceMs: number;
  /** Called for each sandbox whose deadline passes. */
  readonly end: (executionId: string) => Promise<void>;
  readonly now: () => number;
  readonly log: Log;
}

export interface Expiry {
  start(): void;
  /** Must be called when a sandbox has started or ended, or its end time has changed. */
  changed(): void;
  stop(): void;
}

export function createExpiry({ running, lastContact, graceMs, end, now, log }: ExpiryDeps): Expiry {
  const state = {
    timer: undefined as NodeJS.Timeout | undefined,
    at: Number.POSITIVE_INFINITY,
    started: false,
    stopped: false,
  };

  // Counts from the later of the two, because the orchestrator could act until its last contact.
  const deadline = (endAt: number) => Math.max(endAt, lastContact()) + graceMs;

  const arm = (at: number) => {
    clearTimeout(state.timer);
    state.at = at;
    if (state.stopped || at === Number.POSITIVE_INFINITY) return;
    state.timer = setTimeout(fire, Math.min(Math.max(at - now(), 1), MAX_TIMER_MS));
    state.timer.unref();
  };

  const fire = () => {
    let next = Number.POSITIVE_INFINITY;
    for (const { executionId, endAt } of running()) {
      const at = deadline(endAt);
      if (at > now()) next = Math.min(next, at);
      else {
        next = Math.min(next, now() + RETRY_MS);
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
