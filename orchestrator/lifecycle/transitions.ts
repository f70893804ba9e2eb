/**
 * One transition at a time per sandbox: a caller with the same aim joins and shares the result, one with another aim
 * waits and tries again. The compare-and-set on the row decides; this file prevents races within one process, and waits for
 * what other orchestrators do with the sandbox.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { AppError } from "../../shared/http/errors.ts";
import { withDeadline, within } from "../../shared/program/deadline.ts";
import { type Elsewhere, type Operations, onlyOwn } from "../store/operations/operations.ts";
import { type Aim, UnderWay, yieldsToKill } from "../store/operations/record.ts";

export interface Transition<T> {
  readonly sandboxId: string;
  readonly aim: Aim;
  /** Longest wait for transitions with another aim. */
  readonly waitMs: number;
  /** What to do when the same aim is under way. Absent: join it. */
  readonly same?: "join" | "wait" | "refuse";
  /** What the caller asks for. It joins a transition with the same key, and waits for one with another key or at another orchestrator. */
  readonly key?: string;
  /** Called when no other transition runs. It must read and check the row again, because the row may have changed. */
  readonly work: () => Promise<T>;
  /** Called before a caller joins the same aim at another orchestrator; throws when that is not what the caller asked for. */
  readonly beforeJoining?: () => Promise<void>;
  /** What a caller gets that joined the same aim at another orchestrator, which succeeded. Absent: the result of `work`. */
  readonly shared?: T;
}

export interface Transitions {
  /** @throws {AppError} conflict when other transitions kept the sandbox busy for `waitMs`. */
  perform<T>(transition: Transition<T>): Promise<T>;
  /** The aim under way for a sandbox in this process. */
  current(sandboxId: string): Aim | undefined;
  /** Waits up to `waitMs` for the transition under way, here or at another orchestrator. False: there is none. */
  settled(sandboxId: string, waitMs: number): Promise<boolean>;
}

interface Running {
  readonly aim: Aim;
  readonly key: string | undefined;
  readonly done: Promise<unknown>;
}

/** Time between two looks at what another orchestrator does. */
const LOOK_MS = 50;

/** @param operations absent: no other process works on the sandboxes */
export function createTransitions(operations: Operations = onlyOwn): Transitions {
  const running = new Map<string, Running>();

  /** Resolves with the reason of its failure, if it failed. */
  async function ended({ id }: Elsewhere, limit: AbortSignal): Promise<AppError | undefined> {
    for (;;) {
      const outcome = await operations.outcome(id);
      if (outcome !== "under way") return outcome;
      if (limit.aborted) throw busy();
      await sleep(LOOK_MS);
    }
  }

  /** Works when no other orchestrator works on the sandbox, or shares what that one does. */
  async function work<T>(transition: Transition<T>, limit: AbortSignal): Promise<T> {
    const { sandboxId, aim, key } = transition;
    const same = transition.same ?? (key === undefined ? "join" : "wait");
    for (;;) {
      const other = await operations.elsewhere(sandboxId);
      if (other === undefined || (aim === "gone" && yieldsToKill(other.aim))) {
        try {
          return await transition.work();
        } catch (error) {
          await retryIfUnderWay(error, transition, limit);
        }
      } else if (other.aim !== aim || same === "wait") await ended(other, limit);
      else if (same === "refuse") throw busy();
      else {
        await transition.beforeJoining?.();
        const failure = await ended(other, limit);
        if (failure !== undefined) throw failure;
        if (transition.shared !== undefined) return transition.shared;
      }
    }
  }

  /** Returns, after a while, when another orchestrator's work began or ended between the look and the move. */
  async function retryIfUnderWay(
    error: unknown,
    { sandboxId, aim }: Pick<Transition<unknown>, "sandboxId" | "aim">,
    limit: AbortSignal,
  ): Promise<void> {
    if (!(error instanceof UnderWay)) {
      // Where its outcome is unknown, the next caller takes it over.
      await release(sandboxId, aim);
      throw error;
    }
    if (limit.aborted) throw error;
    await sleep(LOOK_MS);
  }

  async function release(sandboxId: string, aim: Aim): Promise<void> {
    try {
      await operations.release(sandboxId, aim);
    } catch {
      // The caller gets the reason of its failure. Housekeeping here finds the operation when its time has passed.
    }
  }

  function begin<T>(transition: Transition<T>, limit: AbortSignal): Promise<T> {
    const { sandboxId, aim, key } = transition;
    const done = work(transition, limit);
    const mine: Running = { aim, key, done };
    running.set(sandboxId, mine);
    const end = () => {
      if (running.get(sandboxId) === mine) running.delete(sandboxId);
    };
    done.then(end, end);
    return done;
  }

  return {
    current: (sandboxId) => running.get(sandboxId)?.aim,
    settled(sandboxId, waitMs) {
      return within(waitMs, async (limit) => {
        const current = running.get(sandboxId);
        if (current !== undefined) await settled(current.done, limit);
        else {
          const other = await operations.elsewhere(sandboxId);
          if (other === undefined) return false;
          await ended(other, limit);
        }
        return true;
      });
    },

    perform: (transition) => within(transition.waitMs, (limit) => perform(transition, limit)),
  };

  async function perform<T>(transition: Transition<T>, limit: AbortSignal): Promise<T> {
    for (;;) {
      const current = running.get(transition.sandboxId);
      if (current === undefined) return begin(transition, limit);
      // Transitions of one aim have one type of result.
      if (current.aim === transition.aim && transition.same === "refuse") throw busy();
      const isSame = current.aim === transition.aim && current.key === transition.key;
      if (isSame && transition.same !== "wait") return current.done as Promise<T>;
      if (transition.aim === "gone" && yieldsToKill(current.aim)) return begin(transition, limit);
      await settled(current.done, limit);
    }
  }
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
