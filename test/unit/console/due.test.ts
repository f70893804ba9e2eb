/** When a screen that shows what changes by itself loads it again. */

import { expect, test } from "vitest";
import { isDue } from "../../../console/src/base/due.ts";

test.each([
  ["the last request was answered", undefined, 1_000, true],
  ["the last request has been under way for a moment", 1_000, 3_000, false],
  ["the last request has been under way for nearly half a minute", 1_000, 30_999, false],
  ["the last request seems to be lost", 1_000, 31_000, true],
])(
  "a screen whose time has come loads again, unless a request may still be answered: %s",
  (_name, begunAt, now, due) => {
    expect(isDue(begunAt, now)).toBe(due);
  },
);
