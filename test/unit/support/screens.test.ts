/** Every screen and tab of the console is among those whose accessibility a browser checks, also one of the future. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const textOf = (file: string) => readFileSync(join(root, file), "utf8");
const checked = textOf("test/browser/screens.test.ts");

/** The keys of an object of the test. */
function keysOf(name: string): readonly string[] {
  const [, body = ""] = new RegExp(`const ${name}: [^=]*= \\{\\n([^]*?)\\n\\};`).exec(checked) ?? [];
  return [...body.matchAll(/^ {2}"?([\w/]*)"?: /gm)].map(([, key = ""]) => key);
}

test("every screen is checked by its path, and the operators' by its own test", () => {
  const screens = [...textOf("console/src/app.tsx").matchAll(/path: "\/([a-z]*)", name/g)].map(([, path = ""]) => path);
  expect(screens.length).toBeGreaterThan(10);
  expect(screens.filter((path) => !keysOf("SCREENS").includes(path))).toEqual(["platform"]);
  expect(checked).toMatch(/an operator sees nodes[^]*violationsInBothThemes\(page\)/);
  const ofProjects = textOf("test/browser/platform.test.ts");
  expect(ofProjects).toMatch(/an operator makes a project[^]*violationsInBothThemes\(page\)/);
});

test("every tab of a sandbox is checked", () => {
  const tabs = [...textOf("console/src/sandbox/sandbox.tsx").matchAll(/\{ id: "(\w+)", name/g)].map(([, id]) => id);
  expect(tabs.length).toBeGreaterThan(8);
  expect(tabs.filter((id = "") => !keysOf("TABS").includes(id))).toEqual([]);
});
