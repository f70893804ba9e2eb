import { expect, test } from "vitest";
import { createTiming, noTiming, serverTiming } from "../../../../shared/program/tracing/timing.ts";

test("a part that is measured twice is added up, also when its work fails; of work beside other work the longest counts", async () => {
  const timing = createTiming();
  timing.add("node", 2);
  timing.add("node", 3);
  for (const ms of [10, 40, 20]) timing.beside().add("queue", ms);
  const one = timing.beside();
  one.add("node", 1);
  await expect(one.measure("store", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await timing.measure("read", () => Promise.resolve("read"))).toBe("read");
  const parts = timing.parts();
  expect([parts.get("node"), parts.get("queue")]).toEqual([6, 40]);
  expect([...parts.keys()].sort()).toEqual(["node", "queue", "read", "store"]);
});

test("the header has names and milliseconds, and nothing that a name may not have", () => {
  const parts = [
    ["queue", 0.04],
    ["node.boot", 12.345],
    ["x;dur=1", 1],
    ["nan", Number.NaN],
    ["past", -1],
  ] as const;
  expect(serverTiming(parts)).toBe("queue;dur=0.0, node.boot;dur=12.3, past;dur=0.0");
});

test("without a timing the work runs all the same", async () => {
  noTiming.beside().add("node", 1);
  expect(await noTiming.measure("node", () => Promise.resolve(7))).toBe(7);
  expect(noTiming.parts().size).toBe(0);
});
