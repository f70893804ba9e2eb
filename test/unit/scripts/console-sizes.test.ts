/** The bounds of what a browser loads of the console. */

import { expect, test } from "vitest";
import { beyondBounds } from "../../../scripts/lib/programs/console-sizes.ts";

const BOUNDS = { "first load": 100, xterm: 200 };

test.each([
  ["as large as their bounds", { "first load": 100, xterm: 200 }, []],
  [
    "too large",
    { "first load": 101, xterm: 200 },
    ["the console's first load has 101 bytes compressed, and may have 100"],
  ],
  ["not all there", { "first load": 1 }, ["the build of the console has no part 'xterm'"]],
  [
    "more than have bounds",
    { "first load": 1, xterm: 1, editor: 5 },
    ["the console's part 'editor' (5 bytes compressed) has no bound"],
  ],
])("the build says what is wrong with parts that are %s", (_what, sizes, expected) => {
  expect(beyondBounds(sizes, BOUNDS)).toEqual(expected);
});
