/** The times of which the use of a project can be shown and saved. */

import { expect, test } from "vitest";
import { csvName, isPeriod, PERIODS, rangeOf } from "../../../console/src/project/period.ts";

const seconds = (...date: readonly [number, number, number, number?, number?]) =>
  Math.floor(new Date(...date).getTime() / 1000);
/** The first of March, on the clock of this machine. */
const NOW = new Date(2026, 2, 1, 10, 30).getTime();

test.each([
  ["day", seconds(2026, 1, 28, 10, 30), seconds(2026, 2, 1, 10, 30)],
  ["today", seconds(2026, 2, 1), seconds(2026, 2, 1, 10, 30)],
  ["yesterday", seconds(2026, 1, 28), seconds(2026, 2, 1) - 1],
  ["week", seconds(2026, 1, 22, 10, 30), seconds(2026, 2, 1, 10, 30)],
] as const)("the period '%s' begins and ends on the clock of the browser", (period, start, end) => {
  expect(rangeOf(period, NOW)).toEqual({ start, end });
});

test.each([
  ["of one day", [seconds(2026, 1, 28), seconds(2026, 1, 28, 12), seconds(2026, 2, 1) - 1], "usage-20260228.csv"],
  ["of several days", [seconds(2026, 1, 22, 10), seconds(2026, 2, 1, 10)], "usage-20260222-20260301.csv"],
  ["of no time", [], "usage.csv"],
] as const)("the file of the use %s is called by its days", (_name, times, expected) => {
  expect(csvName(times)).toBe(expected);
});

test("every period can be chosen, and nothing else", () => {
  expect(PERIODS.every(([period]) => isPeriod(period))).toBe(true);
  expect(isPeriod("century")).toBe(false);
});
