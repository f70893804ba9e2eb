/** What is written in place of a destination that nobody can ask about. */

import { expect, test } from "vitest";
import { adviceOnAsked } from "../../../../orchestrator/network-policy/advice.ts";

test.each([
  ["https://a.com/v1", "write 'a.com'"],
  ["a.com:443", "write 'a.com'"],
  ["https://1.2.3.4:8443/", "write '1.2.3.4'"],
  ["0.0.0.0:80", "write '0.0.0.0'"],
  [".a.com", undefined],
  ["https://*.a.com", undefined],
  ["*:443", undefined],
  ["https://[::1]/", undefined],
] as const)("of the destination %j, it is one name or one address", (text, advice) => {
  expect(adviceOnAsked(text)).toBe(advice);
});
