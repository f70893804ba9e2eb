/**
 * One transition at a time for each sandbox: who wants the same joins and gets its result, who wants something else
 * waits and tries again. The compare-and-set on the row is what decides; this saves callers from racing.
 */

import { AppError } from "../../../shared/http/errors.ts";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";

/** The state of rest that a transition is for; what ends where it began is an aim of its own. */
export type Aim = Extract<SandboxState, "running" | "paused" | "gone" | "snapshotting"> | "network";

interface Transition<T> {
  readonly sandboxId: string;
  readonly aim: Aim;
  /** How long to wait for transitions with another aim before giving up. */
  readonly waitMs: number;
  /** What happens when the same aim is under way already. Absent: it is joined. */
  readonly same?: "join" | "wait" | "refuse";
  /** Called when nothing stands in the way. It reads and checks the row itself: what was true before waiting may not be. */
  readonly work: () => Promise<T>;
}

export interface Transitions {
  /** AppError `conflict` when others kept the sandbox busy for `waitMs`. */
  perform<T>(transition: Transition<T>): Promise<T>;
  /** What is under way for a sandbox here. */
  current(sandboxId: string): Aim | undefined;
  /** Waits for whatever is under way here to end, at most so long; nothing under way is fine. */
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
        // Callers of one aim are of one kind: the same aim means the same type of result.
        if (current.aim === transition.aim && transition.same === "refuse") throw busy();
        if (current.aim === transition.aim && transition.same !== "wait") return current.done as Promise<T>;
        // A kill does not wait for these: they find their row moved and give up.
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

/** Waits for the end of a transition, however it ends. */
async function settled(done: Promise<unknown>, limit: AbortSignal): Promise<void> {
  let stop: () => void = () => undefined;
  const late = new Promise<never>((_, reject) => {
    const refuse = () => reject(busy());
    if (limit.aborted) refuse();
    limit.addEventListener("abort", refuse, { once: true });
    stop = () => limit.removeEventListener("abort", refuse);
  });
  try {
    await Promise.race([
      done.then(
        () => undefined,
        () => undefined,
      ),
      late,
    ]);
  } finally {
    stop();
  }
}
