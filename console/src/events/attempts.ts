/** The attempts of a delivery of a webhook, as the log has them. Pure. */

import type { DeliveryView } from "../../../shared/api/events/webhooks.ts";

interface Attempt {
  /** The first attempt of the delivery is 1, also where the log does not have it any more. */
  readonly number: number;
  readonly at: string;
  readonly took: string;
  readonly answer: string;
  /** What was wrong. */
  readonly error: string;
  /** The beginning of the answer's body. */
  readonly body: string;
}

/** The log has more of the last attempt than a row of a list can show. */
const MOST_CHARACTERS = 256;

/** The newest first. */
export function attemptsOf({
  attempts: made,
  lastAttempt,
  earlierAttempts = [],
}: Pick<DeliveryView, "attempts" | "lastAttempt" | "earlierAttempts">): readonly Attempt[] {
  const kept = [...earlierAttempts, ...(lastAttempt === undefined ? [] : [lastAttempt])];
  return kept
    .map(({ at, durationMs, httpStatus, errorClass, error = "", responseBody = "" }, index) => ({
      number: made - kept.length + 1 + index,
      at,
      took: durationMs === undefined ? "–" : `${durationMs} ms`,
      answer: answerOf(httpStatus, errorClass, { isOver: durationMs !== undefined }),
      error,
      body: responseBody.length > MOST_CHARACTERS ? `${responseBody.slice(0, MOST_CHARACTERS)}…` : responseBody,
    }))
    .reverse();
}

function answerOf(status: number | undefined, errorClass: string | undefined, { isOver }: { isOver: boolean }): string {
  if (status !== undefined) return String(status);
  return errorClass ?? (isOver ? "–" : "has no end: it is under way, or the platform was stopped meanwhile");
}
