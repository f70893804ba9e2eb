/** The tests of the template desktop leave out no method of the package that drives it. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Sandbox } from "@e2b/desktop";
import { expect, test } from "vitest";

const source = readFileSync(join(import.meta.dirname, "../../starters/desktop.test.ts"), "utf8");
/** What other methods of the package call; its types do not have them. */
const INNER = [
  "constructor",
  "_start",
  "startXfce4",
  "breakIntoChunks",
  "quoteString",
  "getVNCCommand",
  "waitForPort",
  "checkVNCRunning",
];
const outer = (prototype: object) => Object.getOwnPropertyNames(prototype).filter((name) => !INNER.includes(name));

test("every method of @e2b/desktop is called in the tests of the template", () => {
  const sandbox = new Sandbox({ sandboxId: "none", envdVersion: "1.0.0", apiKey: "e2b_0" });
  const calls = [
    ...outer(Sandbox.prototype).map((name) => `sandbox.${name}(`),
    ...outer(Object.getPrototypeOf(sandbox.stream) as object).map((name) => `sandbox.stream.${name}(`),
  ];
  expect(calls.length).toBeGreaterThan(20);
  expect(calls.filter((call) => !source.includes(call))).toEqual([]);
});
