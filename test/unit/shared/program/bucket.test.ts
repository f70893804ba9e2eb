import { expect, test } from "vitest";
import { bucket } from "../../../../shared/program/bucket.ts";

test("a bucket gives its burst, and then its rate", () => {
  const clock = { now: 0 };
  const tokens = bucket(2, 1, () => clock.now);
  expect([tokens.take(), tokens.take(), tokens.take()]).toEqual([true, true, false]);
  clock.now += 1_000;
  expect([tokens.take(), tokens.take()]).toEqual([true, false]);
});

test("a clock that is set back by an hour takes nothing out of a bucket", () => {
  const clock = { now: 10_000_000 };
  const tokens = bucket(2, 1, () => clock.now);
  expect(tokens.take()).toBe(true);
  clock.now -= 3_600_000;
  expect(tokens.take()).toBe(true);
  clock.now += 1_000;
  expect(tokens.take()).toBe(true);
});
