/**
 * The turns of boots and restores on this node: more of them at a time would only slow each of them. A start waits for its turn for a
 * limited time, which is no part of the start: then the node refuses it as busy, and its caller asks again.
 */

import { AppError } from "../../../shared/http/errors.ts";
import { within } from "../../../shared/program/deadline.ts";
import type { Semaphore } from "../../../shared/program/semaphore.ts";
import { createArrivals } from "./arrivals.ts";

interface TurnAsk {
  /** Whose turn it takes: one project's many starts leave a turn to others. */
  readonly owner: string | undefined;
  /** Of a start that somebody waits for. Absent: what the node makes for itself waits without a limit. */
  readonly executionId?: string | undefined;
}

export interface Turns {
  /** Resolves to what gives the turn back. @throws {AppError} node_busy: asked for again, the start keeps its place */
  take(ask: TurnAsk, signal: AbortSignal): Promise<() => void>;
  /** The start needs no turn any more. */
  forget(executionId: string): void;
  /** Turns that are taken. */
  readonly busy: number;
}

interface TurnsDeps {
  readonly semaphore: Semaphore;
  /** A start that has waited this long is refused. */
  readonly queueMs: number;
  readonly now: () => number;
}

export function createTurns({ semaphore, queueMs, now }: TurnsDeps): Turns {
  const arrivals = createArrivals(now);
  return {
    async take({ owner, executionId }, signal) {
      if (executionId === undefined) return semaphore.take(signal, owner);
      const asked = arrivals.of(executionId);
      const release = await within(queueMs, (limit) =>
        semaphore.take(AbortSignal.any([signal, limit]), owner, asked).catch((error: unknown) => {
          if (!limit.aborted || signal.aborted) throw error;
          throw new AppError(
            "node_busy",
            `the node starts other sandboxes and had no turn for this one within ${queueMs} ms: try again`,
          );
        }),
      );
      arrivals.forget(executionId);
      return release;
    },
    forget: (executionId) => arrivals.forget(executionId),
    get busy() {
      return semaphore.busy;
    },
  };
}
