/** Why the page has no sample of a sandbox. */

import { expect, test } from "vitest";
import { whyNoSamples } from "../../../../console/src/sandbox/why-no-samples.ts";

test.each([
  ["running", /^The first sample comes/],
  ["paused", /the sandbox is paused/],
  ["ended", /it ended before the first one/],
] as const)(
  "of a sandbox that is %s without samples the page promises no sample that will not come",
  (state, expected) => {
    expect(whyNoSamples(state)).toMatch(expected);
  },
);
