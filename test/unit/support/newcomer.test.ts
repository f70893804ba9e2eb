/** The ten tasks of a newcomer: the documents have them as the tests count them, and each is done in a browser. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TASKS, taskTable } from "../../support/browser/tasks.ts";

const root = join(import.meta.dirname, "../../..");

test("the table of tasks in docs/console.md is that of the tests", () => {
  expect(readFileSync(join(root, "docs/console.md"), "utf8")).toContain(`\n${taskTable()}\n`);
  expect(Object.keys(TASKS)).toHaveLength(10);
});

test("every task is done in a browser", () => {
  const folder = join(root, "test/browser");
  const text = readdirSync(folder)
    .filter((name) => name.startsWith("newcomer"))
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("\n");
  expect(Object.keys(TASKS).filter((task) => !text.includes(`newcomerAt(page, "${task}")`))).toEqual([]);
});
