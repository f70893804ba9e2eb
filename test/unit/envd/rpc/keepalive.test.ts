import { expect, test } from "vitest";
import { keepaliveMs } from "../../../../envd/rpc/keepalive.ts";

test.each([
  [null, 90_000],
  [undefined, 90_000],
  ["50", 50_000],
  ["1", 1_000],
  ["0", 90_000],
  ["-5", 90_000],
  ["1.5", 90_000],
  ["soon", 90_000],
  ["999999999", 86_400_000],
])("the keepalive header %j means an interval of %i ms", (header, expected) => {
  expect(keepaliveMs(header)).toBe(expected);
});
