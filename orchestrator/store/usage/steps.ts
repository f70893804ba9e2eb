/** The steps of time in which the use of projects is stored, and for how long. Pure. */

export interface StoredStep {
  /** Length of one sample, seconds. Each is a multiple of the one before. */
  readonly seconds: number;
  /** How long its samples are kept, seconds; blocks a block longer. */
  readonly keptFor: number;
  /** Length of the time whose samples are packed into one row, seconds; a multiple of every step. Absent: one row each. */
  readonly block?: number;
}

const HOUR = 3_600;
const DAY = 86_400;

/**
 * From the finest to the coarsest: at most 720, 2 880, 2 016 and 8 640 samples of a project, and an hour's more. A full block
 * has more bytes than a page of SQLite (4 KiB), because a page holds only one row of more than half of it.
 */
export const STORED_STEPS: readonly StoredStep[] = [
  { seconds: 5, keptFor: HOUR },
  { seconds: 30, keptFor: DAY, block: 2 * HOUR },
  { seconds: 300, keptFor: 7 * DAY, block: DAY },
  { seconds: 900, keptFor: 90 * DAY, block: 4 * DAY },
];
export const FINEST = 5;
export const COARSEST = 900;

/** Steps of answers by the length of the range (behaviours §7.3): below `range` seconds, samples of `step` seconds. */
const ANSWERED: readonly { readonly range: number; readonly step: number }[] = [
  { range: HOUR, step: 5 },
  { range: 6 * HOUR, step: 30 },
  { range: 12 * HOUR, step: 60 },
  { range: DAY, step: 120 },
  { range: 7 * DAY, step: 300 },
];

/**
 * The step of the answer to a query, and the stored step that it is made from. A range whose beginning is older than the
 * fine samples gets the finest that are still there.
 * @param range Unix seconds
 */
export function stepsFor(
  range: { readonly start: number; readonly end: number },
  now: number,
): { readonly step: number; readonly stored: number } {
  const length = range.end - range.start;
  const asked = ANSWERED.find((answer) => length < answer.range)?.step ?? COARSEST;
  const age = now - range.start;
  const there = STORED_STEPS.find(({ keptFor }) => age <= keptFor)?.seconds ?? COARSEST;
  const step = Math.max(asked, there);
  const stored = STORED_STEPS.findLast(({ seconds }) => step % seconds === 0)?.seconds ?? FINEST;
  return { step, stored };
}

/** The beginning of the step that a time is in. */
export function slotOf(seconds: number, step: number): number {
  return Math.floor(seconds / step) * step;
}
