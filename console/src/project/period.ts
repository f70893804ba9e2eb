/** Of which time the use of a project is shown. Days are those of the browser's clock. Pure. */

export const PERIODS = [
  ["day", "last 24 hours"],
  ["today", "today"],
  ["yesterday", "yesterday"],
  ["week", "last 7 days"],
] as const;

export type Period = (typeof PERIODS)[number][0];

/** Unix seconds; both are included. */
interface Range {
  readonly start: number;
  readonly end: number;
}

/** @param now Unix milliseconds */
export function rangeOf(period: Period, now: number): Range {
  const at = new Date(now);
  // A day may have 23 or 25 hours, so its beginning is that of a date.
  const beginning = (daysAgo: number) =>
    Math.floor(new Date(at.getFullYear(), at.getMonth(), at.getDate() - daysAgo).getTime() / 1000);
  const end = Math.floor(now / 1000);
  switch (period) {
    case "day":
      return { start: end - 86_400, end };
    case "today":
      return { start: beginning(0), end };
    case "yesterday":
      return { start: beginning(1), end: beginning(0) - 1 };
    case "week":
      return { start: end - 7 * 86_400, end };
  }
}

export function isPeriod(text: string): text is Period {
  return PERIODS.some(([period]) => period === text);
}

/** The name of the file that has these samples, by the days on the clock of the browser. @param times Unix seconds, the oldest first */
export function csvName(times: readonly number[]): string {
  const days = [times[0], times.at(-1)].filter((each) => each !== undefined).map(dayOf);
  return `${["usage", ...new Set(days)].join("-")}.csv`;
}

function dayOf(seconds: number): string {
  const at = new Date(seconds * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${at.getFullYear()}${two(at.getMonth() + 1)}${two(at.getDate())}`;
}
