import { expect, test } from "vitest";
import { openFileLimit, parseEngineLimits, userLimits } from "../../../../agent/host/engine-limits.ts";

const ALL = "Name:\tdockerd\nCapEff:\t000001ffffffffff\n";
const WITHOUT_RESOURCE = "Name:\tdockerd\nCapEff:\t000001fffeffffff\n";
const LIMITS = `Limit                     Soft Limit           Hard Limit           Units
Max processes             96365                unlimited            processes
Max open files            20000                40000                files
Max locked memory         8388608              9000000              bytes
Max pending signals       96365                96365                signals
Max msgqueue size         819200               819200               bytes
`;

test("sandboxes have no limit that counts for a user id where Docker may grant that", () => {
  const unlimited = { nproc: -1, sigpending: -1, msgqueue: -1, memlock: -1 };
  expect(userLimits(parseEngineLimits(ALL, LIMITS))).toEqual(unlimited);
});

test("where Docker may not raise limits, sandboxes have its own hard limits", () => {
  const own = { nproc: -1, sigpending: 96_365, msgqueue: 819_200, memlock: 9_000_000 };
  expect(userLimits(parseEngineLimits(WITHOUT_RESOURCE, LIMITS))).toEqual(own);
});

test("a sandbox may open as many files as wanted, but no more than Docker can grant", () => {
  expect(openFileLimit(65_536, parseEngineLimits(ALL, LIMITS))).toBe(65_536);
  expect(openFileLimit(65_536, parseEngineLimits(WITHOUT_RESOURCE, LIMITS))).toBe(40_000);
  expect(openFileLimit(65_536, parseEngineLimits("", ""))).toBe(1_024);
});
