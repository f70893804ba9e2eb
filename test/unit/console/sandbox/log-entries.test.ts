/** The lines of a sandbox's log that the page has, and those that a reading adds. */

import { expect, test } from "vitest";
import { type Entry, merged, whyNoLines } from "../../../../console/src/sandbox/log-entries.ts";

/** Lines such as `3:text`: a second, and what was printed. */
function lines(...texts: readonly string[]): Entry[] {
  return texts.map((text) => {
    const [second = "", message = ""] = text.split(":");
    return { timestamp: new Date(Number(second) * 1_000).toISOString(), level: "info", message, fields: {} };
  });
}

test.each([
  ["the first reading", [], ["1:a", "2:b"], ["1:a", "2:b"]],
  ["a reading from the last line on", ["1:a", "2:b"], ["2:b", "3:c"], ["1:a", "2:b", "3:c"]],
  ["a reading without news", ["1:a", "2:b"], ["2:b"], ["1:a", "2:b"]],
  ["equal lines of one moment", ["1:a", "1:a"], ["1:a", "1:a", "1:a", "2:b"], ["1:a", "1:a", "1:a", "2:b"]],
  [
    "a reading that another one has overtaken",
    ["1:a", "2:b", "3:c"],
    ["1:a", "2:b", "3:c", "4:d"],
    ["1:a", "2:b", "3:c", "4:d"],
  ],
])("no line is shown twice and none is left out: %s", (_name, old, read, expected) => {
  expect(merged(lines(...old), lines(...read))).toEqual(lines(...expected));
});

test("a log without news stays the same object, so that nothing is drawn again", () => {
  const old = lines("1:a");
  expect(merged(old, lines("1:a"))).toBe(old);
});

test.each([
  ["", "", "running", "No program has written to the log yet."],
  ["", "", "ended", "No program wrote to the log, or the node no longer keeps it."],
  ["warn", "", "running", "The log has no line of the level ‘warn’ or above."],
  ["", "out of", "running", "No line contains ‘out of’. The search tells upper case from lower case."],
  [
    "warn",
    "x",
    "ended",
    "No line of the level ‘warn’ or above contains ‘x’. The search tells upper case from lower case.",
  ],
] as const)("of level ‘%s’, search ‘%s’ and a sandbox that is %s, the page says why there is no line", (...given) => {
  const [level, search, state, expected] = given;
  expect(whyNoLines({ level, search }, state)).toBe(expected);
});
