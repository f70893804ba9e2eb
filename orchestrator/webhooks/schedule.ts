/** When a failed delivery is tried again. Pure. */

const FIRST_MS = 5_000;
const LONGEST_MS = 3_600_000;
const SHORTEST_MS = 1_000;
/** How long after its event a delivery is tried again. */
export const RETRY_MS = 24 * 3_600_000;

export interface FailedAttempt {
  /** Including the one that failed. */
  readonly attempts: number;
  readonly createdAt: number;
  readonly now: number;
  /** A random number in [0, 1). */
  readonly random: number;
  /** What the receiver asked for. */
  readonly retryAfterMs?: number | undefined;
}

/** Time of the next attempt: twice as far away each time, up to an hour, with jitter. Undefined: a day has passed. */
export function nextAttempt({ attempts, createdAt, now, random, retryAfterMs }: FailedAttempt): number | undefined {
  if (now - createdAt >= RETRY_MS) return undefined;
  const backOff = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempts - 1, 20));
  const jittered = backOff * (0.5 + random / 2);
  const asked = retryAfterMs === undefined ? jittered : Math.max(retryAfterMs, jittered);
  return now + Math.round(Math.min(LONGEST_MS, Math.max(SHORTEST_MS, asked)));
}

/** A `Retry-After` header in seconds or as a date, in milliseconds. */
export function readRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\s*\d{1,9}\s*$/.test(header)) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
