/** The payloads of a hostile tenant against the web console: how many there are, and that every kind is tried in a browser. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ATTEMPTS, ESCAPES, FILES, hostileAnswers, TEXTS } from "../../support/browser/hostile.ts";

const KINDS: Readonly<Record<string, readonly string[]>> = {
  TEXTS,
  ESCAPES,
  FILES: Object.entries(FILES).map(String),
  ATTEMPTS: Object.values(ATTEMPTS),
  hostileAnswers: Object.values(hostileAnswers("http://localhost:3000")).map((answer) => JSON.stringify(answer)),
};

test("a hostile tenant has sixty payloads and more, and none of them twice", () => {
  const all = Object.values(KINDS).flat();
  expect(new Set(all).size).toBe(all.length);
  expect(all.length).toBeGreaterThanOrEqual(60);
});

test("every kind of payload is tried on the console in a browser", () => {
  const folder = join(import.meta.dirname, "../../browser");
  const tests = readdirSync(folder).filter((name) => name.startsWith("hostile"));
  const text = tests.map((name) => readFileSync(join(folder, name), "utf8")).join("\n");
  // Its import, and its use.
  for (const kind of Object.keys(KINDS))
    expect(text.match(new RegExp(`\\b${kind}\\b`, "g"))?.length, kind).toBeGreaterThan(1);
});
