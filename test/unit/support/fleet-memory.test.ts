/** A program of a fleet that keeps more memory or descriptors than it may is named, whichever process it is by then. */

import { describe, expect, test } from "vitest";
import { type ProgramUses, table, tooMuch } from "../../support/fleet/memory.ts";

const uses = (memoryMb: number, descriptors: number, pid = 1): ProgramUses =>
  new Map([["edge of fe1", { kind: "edge", pid, memoryMb, descriptors }]]);
const before = uses(100, 30);

test.each([uses(100, 30), uses(164, 70), uses(20, 5, 2)])("case %# is within the bounds", (now) => {
  expect(tooMuch(before, now)).toEqual([]);
});

describe("what is beyond them", () => {
  test.each([
    [uses(165, 30), ["memory of the edge of fe1: 164 MB at most, 165 MB now"]],
    [uses(165, 30, 2), ["memory of the edge of fe1: 164 MB at most, 165 MB now"]],
    [uses(100, 71), ["descriptors of the edge of fe1: 70 at most, 71 now"]],
    [
      new Map([...uses(1, 1)].map(([, use]) => ["edge of fe2", use] as const)),
      ["the edge of fe2 was not there before"],
    ],
  ])("case %# is named", (now, problems) => {
    expect(tooMuch(before, now)).toEqual(problems);
  });
});

test("the figures tell of each program what it had, what it has, what it may have, and whether it was started again", () => {
  expect(table(before, uses(120, 31))).toBe(
    "edge of fe1: 100 MB before, 120 MB now (64 MB more at most); descriptors 30, 31",
  );
  expect(table(before, uses(90, 31, 2))).toMatch(/ 90 MB now .*; another process$/);
});
