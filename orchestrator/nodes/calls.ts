/**
 * Asking a node for something that may be asked twice, by the id that is in the record. Silence is no answer, so it is
 * asked again for a while; and after silence a node that only says that it is busy or broken has not answered either.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { AppError, type ErrorCode } from "../../shared/http/errors.ts";

export interface AskLimits {
  readonly now: () => number;
  /** Asked again for so long. */
  readonly patienceMs: number;
  /** It was asked before, by somebody who did not hear the answer. */
  readonly repeated?: boolean;
}

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 2_000;
/** Refusals that a node may give without having looked whether it is done already. */
const SAY_NOTHING: ReadonlySet<ErrorCode> = new Set(["node_busy", "unavailable", "internal", "unauthorized"]);

/** The node's answer or its refusal; AppError `node_unreachable` when what it did is not known. */
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
