/**
 * One transition at a time per sandbox: a caller with the same aim joins and shares the result, one with another aim
 * waits and tries again. The compare-and-set on the row decides; this file only prevents races within one process.
 */

import { AppError } from "../../shared/http/errors.ts";
import { withDeadline } from "../../shared/program/deadline.ts";
import type { SandboxState } from "../../shared/states/sandbox-state.ts";

/** The stable state that a transition leads to, or the kind of a transition that ends in the state it began in. */
export type Aim = Extract<SandboxState, "running" | "paused" | "gone" | "snapshotting"> | "network";

interface Transition<T> {
  readonly sandboxId: string;
  readonly aim: Aim;
  /** Longest wait for transitions with another aim. */
  readonly waitMs: number;
  /** What to do when the same aim is under way. Absent: join it. */
  readonly same?: "join" | "wait" | "refuse";
  /** Called when no other transition runs. It must read and check the row again, because the row may have changed. */
  readonly work: () => Promise<T>;
}

export interface Transitions {
  /** @throws {AppError} conflict when other transitions kept the sandbox busy for `waitMs`. */
  perform<T>(transition: Transition<T>): Promise<T>;
  /** The aim under way for a sandbox in this process. */
  current(sandboxId: string): Aim | undefined;
  /** Waits up to `waitMs` for the transition under way in this process; returns at once when there is none. */
  settled(sandboxId: string, waitMs: number): Promise<void>;
}

interface Running {
  readonly aim: Aim;
  readonly done: Promise<unknown>;
}

export function createTransitions(): Transitions {
  const running = new Map<string, Running>();

  function begin<T>({ sandboxId, aim, work }: Transition<T>): Promise<T> {
    const done = work();
    const mine: Running = { aim, done };
    running.set(sandboxId, mine);
    const end = () => {
      if (running.get(sandboxId) === mine) running.delete(sandboxId);
    };
    done.then(end, end);
    return done;
  }

  return {
    current: (sandboxId) => running.get(sandboxId)?.aim,
    async settled(sandboxId, waitMs) {
      const current = running.get(sandboxId);
      if (current !== undefined) await settled(current.done, AbortSignal.timeout(waitMs));
    },

    async perform<T>(transition: Transition<T>): Promise<T> {
      const limit = AbortSignal.timeout(transition.waitMs);
      for (;;) {
        const current = running.get(transition.sandboxId);
        if (current === undefined) return begin(transition);
        // Transitions of one aim have one type of result.
        if (current.aim === transition.aim && transition.same === "refuse") throw busy();
        if (current.aim === transition.aim && transition.same !== "wait") return current.done as Promise<T>;
        // A kill does not wait for these: they find the row moved and stop.
        const yields = current.aim === "running" || current.aim === "network";
        if (transition.aim === "gone" && yields) return begin(transition);
        await settled(current.done, limit);
      }
    },
  };
}

function busy(): AppError {
  return new AppError("conflict", "the sandbox is busy with another transition; try again");
}

/** Waits for the end of a transition, success or failure. */
function settled(done: Promise<unknown>, limit: AbortSignal): Promise<unknown> {
  return withDeadline(Promise.allSettled([done]), limit, () => {
    throw busy();
  });
}
