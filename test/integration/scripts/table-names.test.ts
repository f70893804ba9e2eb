/**
 * The tables of attacks and of cases name tests as the runner prints them: a name that only the source of a test contains, such
 * as an expected answer, would never be found among the outcomes.
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { attacks } from "../../attack/table.ts";
import { cases } from "../../cases/table.ts";
import { outcomeOf } from "../../support/runner/outcomes.ts";

const root = new URL("../../..", import.meta.url).pathname;

test("every row for the unit and integration tests is a test that the runner lists", { timeout: 240_000 }, () => {
  const rows = [...Object.values(cases), ...Object.values(attacks)]
    .flat()
    .filter(({ file }) => /^(unit|integration)\//.test(file));
  const folder = mkdtempSync(join(tmpdir(), "svc-names-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const list = join(folder, "list.json");
  const files = [...new Set(rows.map(({ file }) => `test/${file}`))];
  const { status, stderr } = spawnSync(
    process.execPath,
    ["node_modules/vitest/vitest.mjs", "list", "--config", "test/vitest.config.ts", `--json=${list}`, ...files],
    { cwd: root, encoding: "utf8" },
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const listed = (JSON.parse(readFileSync(list, "utf8")) as { name: string; file: string }[]).map(({ name, file }) => ({
    state: "passed" as const,
    name: `${file.slice(root.length)} > ${name}`,
  }));
  expect(rows.filter((row) => outcomeOf(row, listed) === "not run")).toEqual([]);
});
