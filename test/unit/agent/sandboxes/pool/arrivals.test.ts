import { expect, test } from "vitest";
import { createArrivals } from "../../../../../agent/sandboxes/pool/arrivals.ts";

test("a start that is asked for again has waited since the first time, until it is forgotten or long past", () => {
  const clock = { now: 1_000 };
  const arrivals = createArrivals(() => clock.now);
  expect(arrivals.of("a")).toBe(1_000);
  clock.now = 11_000;
  expect([arrivals.of("a"), arrivals.of("b")]).toEqual([1_000, 11_000]);
  arrivals.forget("a");
  expect(arrivals.of("a")).toBe(11_000);
  clock.now = 71_000;
  expect([arrivals.of("b"), arrivals.of("a")]).toEqual([71_000, 71_000]);
});
