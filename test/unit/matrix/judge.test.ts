/** How the matrix of programs judges answers, and its table. */

import { describe, expect, test } from "vitest";
import {
  isAsWanted,
  type Outcome,
  pageOf,
  partOf,
  problemOf,
  seenIn,
  tableOf,
  WAYS,
  waysOf,
} from "../../matrix/judge.ts";
import { directoryOf } from "../../matrix/program.ts";
import { PROGRAMS } from "../../matrix/programs.ts";

describe("a program's answer", () => {
  test.each([
    ["42 7\n", { me: "42", n: 7 }],
    ["a warning\n1042\t12\r\n", { me: "1042", n: 12 }],
  ])("%j is an identity and a number", (printed, seen) => {
    expect(seenIn(printed)).toEqual(seen);
  });

  test.each(["", "42", "42 seven", "42 7 more"])("%j is none", (printed) => {
    expect(() => seenIn(printed)).toThrow("the program answered");
  });
});

describe("the same program that has gone on", () => {
  const asks = { counts: "asks", isDurable: false } as const;
  const time = { counts: "time", isDurable: false } as const;
  const onDisk = { counts: "asks", isDurable: true } as const;
  const before = { me: "a", n: 7 };

  test.each([
    ["answers with the next number", asks, "fork", { after: { me: "a", n: 8 }, problem: undefined }],
    [
      "does not answer with the same number",
      asks,
      "disk",
      { after: { me: "a", n: 7 }, problem: "it counted from 7 to 7" },
    ],
    ["has not skipped one", asks, "rewind", { after: { me: "a", n: 9 }, problem: "it counted from 7 to 9" }],
    [
      "is not another one with the right number",
      asks,
      "pause",
      { after: { me: "b", n: 8 }, problem: "another one answers: b, not a" },
    ],
    [
      "has grown by itself to a larger number, however large",
      time,
      "pause",
      { after: { me: "a", n: 70 }, problem: undefined },
    ],
    [
      "has a larger number where that grows by itself",
      time,
      "pause",
      { after: { me: "a", n: 7 }, problem: "it counted from 7 to 7" },
    ],
    ["is another one after a boot", asks, "boot", { after: { me: "b", n: 1 }, problem: undefined }],
    [
      "has its number after a boot, where that is on the disk",
      onDisk,
      "boot",
      { after: { me: "a", n: 8 }, problem: undefined },
    ],
    [
      "has not lost what is on the disk in a boot",
      onDisk,
      "boot",
      { after: { me: "b", n: 1 }, problem: "another one answers: b, not a" },
    ],
  ] as const)("%s", (_what, program, way, { after, problem }) => {
    expect(problemOf(program, way, before, after)).toBe(problem);
  });
});

const works: Outcome = { is: "works", ms: 1240 };
const refused = (reason: string): Outcome => ({ is: "refused", reason });

test("a row is as it should be when it works, or is refused with its reason", () => {
  expect(isAsWanted({ refused: undefined }, "fork", works)).toBe(true);
  expect(isAsWanted({ refused: undefined }, "fork", refused("being debugged"))).toBe(false);
  expect(isAsWanted({ refused: undefined }, "fork", undefined)).toBe(false);
  expect(isAsWanted({ refused: /being debugged/ }, "start", works)).toBe(true);
  expect(isAsWanted({ refused: /being debugged/ }, "fork", works)).toBe(false);
  expect(isAsWanted({ refused: /being debugged/ }, "fork", refused("a process is being debugged"))).toBe(true);
  expect(isAsWanted({ refused: /being debugged/ }, "fork", refused("no space"))).toBe(false);
});

test("a program that cannot be stored is not booted from what was stored", () => {
  expect(waysOf({ refused: undefined })).toEqual(WAYS);
  expect(waysOf({ refused: /x/ })).not.toContain("boot");
});

test("the table has a line for each program, with times, reasons, and nothing for ways that were not gone", () => {
  const table = tableOf([
    { name: "Redis", outcomes: { start: works, fork: { is: "fails", reason: "it counted\nfrom 1 | 3" } } },
    { name: "gdb", outcomes: { start: works, pause: refused("a process is being debugged") } },
  ]);
  expect(table.split("\n").slice(2)).toEqual([
    "| Redis | 1.2 s | **fails**: it counted from 1 \\| 3 |  |  |  |  |",
    "| gdb | 1.2 s |  | refused: a process is being debugged |  |  |  |",
  ]);
});

test("the page keeps the rows of earlier runs, replaces those of this one, and has all in their order", () => {
  const names = ["Redis", "nginx", "gdb"];
  const first = pageOf("", [{ name: "gdb", outcomes: { start: works } }, row("Redis", "another one answers")], names);
  const second = pageOf(first, [row("nginx", "late"), { name: "Redis", outcomes: { start: works } }], names);
  const lines = second.split("\n").filter((line) => line.startsWith("| "));
  expect(lines.map((line) => line.split(" | ").slice(0, 2))).toEqual([
    ["| program", "starts"],
    ["| Redis", "1.2 s"],
    ["| nginx", "**fails**: late"],
    ["| gdb", "1.2 s"],
  ]);
  expect(pageOf(second, [], names)).toBe(second);
  expect(pageOf(second, [], ["nginx"])).not.toContain("Redis");
  expect(second).toMatch(/^# What can be paused\n\n/);
});

test("the page counts what goes on, what is refused, what fails and what was not tried", () => {
  const gdb = { name: "gdb", outcomes: { start: works, fork: refused("being debugged") } };
  const redis = { name: "Redis", outcomes: { start: works } };
  const names = ["Redis", "nginx", "gdb"];
  expect(pageOf("", [gdb, redis], names)).toContain("\nOf 3 programs 1 go on, 1 cannot be stored, 1 were not tried.\n");
  const whole = pageOf(pageOf("", [gdb, redis], names), [row("nginx", "late")], names);
  expect(whole).toContain("\nOf 3 programs 1 go on, 1 cannot be stored, 1 fail.\n");
});

test("the parts of a run have every row once, and what is no part is refused", () => {
  const rows = PROGRAMS.map(({ name }) => name);
  const parts = ["1/5", "2/5", "3/5", "4/5", "5/5"].map((part) => partOf(rows, part));
  expect(parts.flat().toSorted()).toEqual(rows.toSorted());
  expect(partOf(rows, "1/1")).toEqual(rows);
  for (const part of ["0/5", "6/5", "1", "a/b", ""]) expect(() => partOf(rows, part)).toThrow("is no part");
});

function row(name: string, reason: string) {
  return { name, outcomes: { start: { is: "fails", reason } } } as const;
}

test("the matrix has more than sixty programs, each with a name and a directory of its own", () => {
  expect(PROGRAMS.length).toBeGreaterThan(60);
  expect(new Set(PROGRAMS.map(({ name }) => name)).size).toBe(PROGRAMS.length);
  expect(new Set(PROGRAMS.map(directoryOf)).size).toBe(PROGRAMS.length);
});
