/** The recipes of templates that come with the platform: each is whole, pins what it fetches, and has its place in the documents. */

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../../..");
const starters = join(root, "scripts/starters");
const NAMES = ["amp", "browser", "claude", "code-interpreter-v1", "codex", "desktop", "opencode", "programs"];
/** What a client may leave empty: a template without a start command has none, and few need packages of npm. */
const TEXTS = ["ABOUT", "IMAGE", "CPU_COUNT", "MEMORY_MB", "FIRST", "ANSWER"];
const MAY_BE_EMPTY = ["BUILT", "START", "READY"];
const LISTS = ["PACKAGES", "NPM", "CHANGES"];

/** The settings of a recipe as bash reads them, in a shell that stops at the first mistake. */
function recipe(name: string): Readonly<Record<string, readonly string[]>> {
  const print = (part: string, value: string) => `printf '%s\\0' ${part} ${value} $'\\n'`;
  const lines = [
    ...[...TEXTS, ...MAY_BE_EMPTY].map((part) => print(part, `"$STARTER_${part}"`)),
    ...LISTS.map((part) => print(part, `"\${STARTER_${part}[@]}"`)),
    print("SETS", `"\${STARTER_SETS[@]}"`),
  ];
  const file = join(starters, name, "recipe.sh");
  const script = `set -euo pipefail\n. '${file}'\n${lines.join("\n")}`;
  const { status, stdout, stderr } = spawnSync("bash", ["-c", script], { encoding: "utf8" });
  expect([name, status, stderr]).toEqual([name, 0, ""]);
  const parts = stdout.split("\0\n\0").filter((part) => part !== "");
  return Object.fromEntries(parts.map((part) => part.split("\0")).map(([key = "", ...values]) => [key, values]));
}

test("there are these templates, each with a recipe and what finishes its image", () => {
  expect(readdirSync(starters).toSorted()).toEqual(NAMES);
  for (const name of NAMES) expect(existsSync(join(starters, name, "finish.sh")), name).toBe(true);
});

test.each(NAMES)(
  "the recipe of %s says what the image holds, how large its sandboxes are, and what a client does first",
  (name) => {
    const read = recipe(name);
    for (const part of TEXTS) expect([part, read[part]?.join("").trim()]).not.toEqual([part, ""]);
    expect(Number(read["MEMORY_MB"]?.[0])).toBeGreaterThan(0);
    // In the list of templates it is one line.
    expect(read["ABOUT"]?.[0]?.length).toBeLessThan(120);
    for (const pin of read["NPM"] ?? [])
      expect(pin).toMatch(/^(x86_64|aarch64) \S+ \d+\.\d+\.\d+\S* sha512-[A-Za-z0-9+/]{86}==$/);
  },
);

test("the documents name each template that is not for tests alone", () => {
  const using = readFileSync(join(root, "docs/using.md"), "utf8");
  const named = NAMES.filter((name) => name !== "programs");
  expect(named.filter((name) => !using.includes(`\`${name}\``) && !using.includes(`template ${name}\``))).toEqual([]);
});
