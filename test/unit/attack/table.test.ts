/** Each row of the table of attacks names an existing test, and its result is computed from recorded outcomes. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { judge, summary } from "../../attack/outcomes.ts";
import { attacks, attacksOfStarters } from "../../attack/table.ts";
import { readers } from "../../fuzz/readers.ts";

/** Names that fuzz.test.ts makes from the readers' names. */
const ofReaders = new Set(readers.map(({ name }) => `${name} keeps its promise`));
const rows = Object.values(attacks).flat();

test("every attack has a test of that name", () => {
  const missing = [...rows, ...Object.values(attacksOfStarters).flat()].filter(({ file, named = "" }) => {
    const source = readFileSync(join(import.meta.dirname, "../..", file), "utf8");
    return !source.includes(named) && !ofReaders.has(named);
  });
  expect(missing).toEqual([]);
});

test("an attack counts as stopped when all its tests passed, and as not run when none of them ran", () => {
  const [first, second] = rows;
  if (first === undefined || second === undefined) throw new Error("two attacks");
  const name = ({ file, named = "" }: typeof first, more: string) => `test/${file} > a block > ${named}${more}`;
  const verdict = (outcomes: Parameters<typeof judge>[0]) => judge(outcomes)[1]?.verdict;
  expect(verdict([{ state: "passed", name: name(first, "") }])).toBe("not run");
  expect(verdict([{ state: "skipped", name: name(second, "") }])).toBe("not run");
  const passed = { state: "passed", name: name(second, " one") } as const;
  expect(verdict([passed])).toBe("stopped");
  expect(verdict([passed, { state: "failed", name: name(second, " two") }])).toBe("NOT stopped");
  const [ofStarters] = Object.values(attacksOfStarters).flat();
  if (ofStarters === undefined) throw new Error("an attack on a starter");
  expect(judge([{ state: "passed", name: name(ofStarters, "") }], attacksOfStarters)[0]?.verdict).toBe("stopped");
  expect(summary(judge([passed]))).toBe(`attacks: 1 stopped, 0 NOT stopped, ${rows.length - 1} not run`);
});
