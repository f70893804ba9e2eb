/** The budgets that a run of the bench must show. */

import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { BUDGETS, shown, verdicts, withBudgets } from "../../bench/budgets.ts";
import { met, type Row, row, summarise } from "../../bench/numbers.ts";

const of = (name: string, p50: number, baseline?: number, count = 1): Row =>
  row({
    name,
    unit: "ms",
    ours: summarise(Array.from({ length: count }, () => p50)),
    ...(baseline === undefined ? {} : { baseline: { name: "raw", ...summarise([baseline]) } }),
    budgets: [],
  });

const judged = (rows: readonly Row[], name: string) =>
  withBudgets(rows)
    .find((one) => one.name === name)
    ?.budgets.map((budget) => [budget.says, Math.round(budget.value * 1_000) / 1_000, met(budget)]);

test("a row is judged by its own figures, its baseline, its number of samples, and other rows", () => {
  const rows = [
    of("exec round trip, bash -l -c true", 8, 100),
    of("first command, 100 at once, nothing prepared", 4_000, 10_000, 93),
    of("resume durable, 16 MB", 58, 2_000),
    of("resume durable, 16 MB, eager", 200, 116),
    of("resume durable, 512 MB", 87),
    of("fork x 1, 512 MB", 400),
    of("fork x 10, 512 MB", 900),
  ];
  expect(judged(rows, "exec round trip, bash -l -c true")).toEqual([["≤ 0.09 x", 0.08, true]]);
  expect(judged(rows, "first command, 100 at once, nothing prepared")).toEqual([
    ["≤ 0.3 x", 0.4, false],
    ["100 of 100", 93, false],
  ]);
  expect(judged(rows, "resume durable, 16 MB")).toEqual([
    ["≤ 0.5 x raw runc restore", 0.5, true],
    ["p50 ≤ 60 ms", 58, true],
  ]);
  expect(judged(rows, "resume durable, 512 MB")).toEqual([["≤ 1.3 x the 16 MB one", 1.5, false]]);
  expect(judged(rows, "fork x 10, 512 MB")).toEqual([["≤ 2.5 x one fork", 2.25, true]]);
});

test("a budget whose row, or the row that it is compared with, is missing is not shown, and the end of the run names it", () => {
  const rows = [of("fork x 10, 512 MB", 900), of("resume frozen, 16 MB", 12), of("fork x 1, 16 MB", 990)];
  expect(judged(rows, "fork x 10, 512 MB")).toEqual([]);
  const lines = verdicts(rows);
  expect(lines[0]).toBe(`budgets: 1 met, 1 missed, ${BUDGETS.length - 2} not shown`);
  expect(lines).toContain("  missed: fork x 1, 16 MB: p50 ≤ 200 ms");
  expect(lines).toContain("  not shown: fork x 10, 512 MB: ≤ 2.5 x one fork");
  expect(lines).toContain("  not shown: rewind, copy ready: p50 ≤ 30 ms");
});

test("a row keeps the budgets of its measurement", () => {
  const own = { says: "≤ 15 MB", value: 13, limit: 15, better: "less" } as const;
  expect(withBudgets([{ ...of("raw create, POST /v2/sandboxes", 8), budgets: [own] }])[0]?.budgets).toEqual([
    own,
    { says: "p50 ≤ 7 ms", value: 8, limit: 7, better: "less" },
  ]);
});

test("each budget has a measurement that gives a row its name", () => {
  const folder = new URL("../../bench/", import.meta.url);
  const files = readdirSync(folder).filter((name) => name.endsWith(".ts") && name !== "budgets.ts");
  const text = files.map((name) => readFileSync(new URL(name, folder), "utf8")).join("\n");
  /** The names of rows in the sources, in which a number or a kind may stand for a variable. */
  const names = [
    ...text.matchAll(/["`]((?:first|raw|exec|cold|pause|resume|fork|ten|rewind|sandbox)[^"`\n]*)["`]/g),
  ].map(
    ([, name = ""]) => new RegExp(`^${name.replaceAll(/[.*+?^()|[\]\\]/g, "\\$&").replaceAll(/\$\{[^}]*\}/g, ".+")}$`),
  );
  // burst.ts makes its names of two parts.
  names.push(/^first command, \d+ at once, nothing prepared$/);
  const without = [...new Set(BUDGETS.map(({ row }) => row))].filter((row) => !names.some((name) => name.test(row)));
  expect(without).toEqual([]);
  expect(shown([]).every(({ budget }) => budget === undefined)).toBe(true);
});
