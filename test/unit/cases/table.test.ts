/** Each row of the table of cases names existing tests, and each kind has siblings that nobody reported. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cases } from "../../cases/table.ts";

test("every case has a test of that name", () => {
  const missing = Object.values(cases)
    .flat()
    .filter(({ file, named = "" }) => {
      const source = readFileSync(join(import.meta.dirname, "../..", file), "utf8");
      return !source.includes(named);
    });
  expect(missing).toEqual([]);
});

test("every kind has a reported case and two siblings of it", () => {
  const without = Object.entries(cases)
    .filter(([, some]) => {
      const siblings = some.filter(({ isSibling }) => isSibling).length;
      return siblings < 2 || siblings === some.length;
    })
    .map(([kind]) => kind);
  expect(without).toEqual([]);
});
