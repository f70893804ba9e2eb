/** What people look for by Ctrl K in their own words: each leads to a screen that there is. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { waysOf } from "../../../../console/src/ways.ts";

const root = join(import.meta.dirname, "../../../..");
const screens = [...readFileSync(join(root, "console/src/app.tsx"), "utf8").matchAll(/path: "(\/[a-z]*)", name/g)];
const paths = new Set(screens.map(([, path]) => path));

const names = (hasProject: boolean, isOperator: boolean) =>
  waysOf({ hasProject, isOperator }).map(({ name }) => name.toLowerCase());

test("every way leads to a screen, and none is named twice", () => {
  const all = waysOf({ hasProject: true, isOperator: true });
  expect(paths.size).toBeGreaterThan(10);
  expect(all.filter(({ path }) => !paths.has(path))).toEqual([]);
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
});

test.each(["drain", "resend", "csv", "cost", "rotate", "failed", "ended", "quota", "audit", "doctor"])(
  "an operator with a project who looks for ‘%s’ finds where that is",
  (word) => {
    expect(names(true, true).some((name) => name.includes(word))).toBe(true);
  },
);

test("whoever is no operator is shown no way of operators, and without a project there is none of projects", () => {
  expect(names(true, false).some((name) => name.includes("drain"))).toBe(false);
  expect(names(false, true).some((name) => name.includes("csv"))).toBe(false);
  expect(names(false, false)).toEqual([]);
});
