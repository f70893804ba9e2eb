/** The limits of what a flood may cost, applied to measured numbers. */

import { expect, test } from "vitest";
import { type Course, excesses, isSettled, table } from "../../attack/flood/judge.ts";

const course = (worst: number, after: number, descriptors = 20, most = 900): Course => ({
  name: "agent",
  before: { memoryMb: 100, descriptors: 20 },
  worst: { memoryMb: worst, descriptors: most },
  after: { memoryMb: after, descriptors },
  descriptorLimit: 1_024,
});

test("a program that grows and gives back within its bounds has no excess", () => {
  expect(excesses(course(200, 180, 84))).toEqual([]);
  expect(isSettled(course(200, 180, 84))).toBe(true);
});

test.each([
  [course(201, 100), "agent grew by 101 MB: 100 is the most"],
  [course(200, 181), "agent keeps 81 MB and 0 descriptors: 80 and 64 are the most"],
  [course(100, 100, 85), "agent keeps 0 MB and 65 descriptors: 80 and 64 are the most"],
  [course(100, 100, 20, 1_024), "agent had all 1024 descriptors in use"],
])("each excess is reported", (one, sentence) => {
  expect(excesses(one)).toEqual([sentence]);
});

test("the table has one row for each program", () => {
  expect(table([course(150, 110)])).toBe(
    [
      "program | before        | worst          | after         | limit",
      "agent   | 100 MB, 20 fd | 150 MB, 900 fd | 110 MB, 20 fd | 200 MB, 1024 fd",
    ].join("\n"),
  );
});
