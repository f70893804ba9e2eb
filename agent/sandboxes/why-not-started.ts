/** The reason of a failed start, for its caller. Pure. */

import { AppError } from "../../shared/http/errors.ts";

/**
 * If the time limit has passed or the stop has arrived, that is the reason, and not what the error says.
 * @param signal of the limit and the stop together
 * @param cancelled of the stop alone
 */
export function whyNotStarted(error: unknown, signal: AbortSignal, cancelled: AbortSignal): unknown {
  if (cancelled.aborted) return cancelled.reason as unknown;
  if (!signal.aborted) return error;
  return new AppError("sandbox_create_failed", "the sandbox did not start in time", { cause: error });
}
