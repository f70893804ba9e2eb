/**
 * Repeats a request to a node that is idempotent by the id in the record. No answer leaves its outcome open, so it
 * is repeated for a while; after that, a node that only answers that it is busy or broken has not decided it either.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { AppError, type ErrorCode } from "../../shared/http/errors.ts";

export interface AskLimits {
  readonly now: () => number;
  /** How long the request is repeated. */
  readonly patienceMs: number;
  /** An earlier request may have reached the node, and its answer was lost. */
  readonly repeated?: boolean;
}

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 2_000;
/** Refusals that a node may send without having looked whether the work is done already. */
const SAY_NOTHING: ReadonlySet<ErrorCode> = new Set(["node_busy", "unavailable", "internal", "unauthorized"]);

/** The node's answer or refusal; AppError `node_unreachable` when the outcome is unknown. */
export async function asked<T>(ask: () => Promise<T>, limits: AskLimits): Promise<T> {
  const until = limits.now() + limits.patienceMs;
  let unsure = limits.repeated ?? false;
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2)) {
    try {
      return await ask();
    } catch (reason) {
      const error = AppError.from(reason);
      const silent = error.code === "node_unreachable";
      if (!silent && !(unsure && SAY_NOTHING.has(error.code))) throw reason;
      unsure = true;
      if (limits.now() + waitMs > until) {
        throw silent ? reason : new AppError("node_unreachable", error.message, { cause: reason });
      }
    }
    await sleep(waitMs);
  }
}
