/** Two deliberate presses for what cannot be taken back: which press asks, which one acts, and which one does nothing. Pure. */

/**
 * Time after the question in which no press acts. A double click, and a press that was meant for what stood there before,
 * come sooner.
 */
export const PAUSE_MS = 700;

export interface Press {
  /** Time of the press in milliseconds, and not of its handling: a busy page handles several at once. */
  readonly at: number;
  /** Which press of a quick series at one place it is, as the browser counts; 0 of a key. */
  readonly inSeries: number;
}

/** When the question was asked; undefined: it is not asked. */
export type AskedAt = number | undefined;

export function outcomeOf(askedAt: AskedAt, { at, inSeries }: Press): "asks" | "acts" | "nothing" {
  if (askedAt === undefined) return "asks";
  // How quick a series is is a setting of the person's system, and may be slower than the pause.
  return at - askedAt >= PAUSE_MS && inSeries <= 1 ? "acts" : "nothing";
}
