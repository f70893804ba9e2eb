import { describe, expect, test } from "vitest";
import { checkConditions, chooseRange, rangeApplies } from "../../../../envd/files/byte-range.ts";

test.each([
  [undefined, 10, "all"],
  ["bytes=0-3", 10, { from: 0, to: 3 }],
  ["bytes=4-", 10, { from: 4, to: 9 }],
  ["bytes=-3", 10, { from: 7, to: 9 }],
  ["bytes=-30", 10, { from: 0, to: 9 }],
  ["bytes=8-99", 10, { from: 8, to: 9 }],
  ["bytes=10-", 10, "none"],
  ["bytes=-0", 10, "none"],
  ["bytes=0-", 0, "all"],
  ["bytes=0-99", 0, "all"],
  ["bytes=-5", 0, "all"],
  ["bytes=5-3", 10, "all"],
  ["bytes=0-1,3-4", 10, "all"],
  ["bytes=-", 10, "all"],
  ["chars=0-3", 10, "all"],
])("range %j of %i bytes is %j", (header, size, expected) => {
  expect(chooseRange(header, size)).toEqual(expected);
});

describe("conditional requests", () => {
  const version = { etag: '"abc"', modifiedMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678) };
  const same = "Fri, 02 Jan 2026 03:04:05 GMT";
  const earlier = "Fri, 02 Jan 2026 03:04:04 GMT";

  test.each([
    [{}, "send"],
    [{ ifModifiedSince: same }, "not modified"],
    [{ ifModifiedSince: earlier }, "send"],
    [{ ifModifiedSince: "yesterday" }, "send"],
    [{ ifNoneMatch: '"abc"' }, "not modified"],
    [{ ifNoneMatch: 'W/"abc", "x"' }, "not modified"],
    [{ ifNoneMatch: "*" }, "not modified"],
    [{ ifNoneMatch: '"x"', ifModifiedSince: same }, "send"],
    [{ ifMatch: '"x"' }, "failed"],
    [{ ifMatch: '"abc"' }, "send"],
    [{ ifUnmodifiedSince: earlier }, "failed"],
    [{ ifUnmodifiedSince: same }, "send"],
  ])("%j has the result '%s'", (conditions, expected) => {
    expect(checkConditions(conditions, version)).toBe(expected);
  });

  test.each([
    [undefined, true],
    ['"abc"', true],
    ['"x"', false],
    [same, true],
    [earlier, false],
  ])("If-Range %j applies: %s", (header, expected) => {
    expect(rangeApplies(header, version)).toBe(expected);
  });
});
