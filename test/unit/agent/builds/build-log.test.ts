/** The log of a build while its entries cannot be stored. */

import { expect, onTestFinished, test, vi } from "vitest";
import { createBuildLog } from "../../../../agent/builds/steps/build-log.ts";

test("entries that a full disk does not take wait for the next write, and no timer throws", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const disk = { full: true };
  const stored: string[] = [];
  const log = createBuildLog(
    "build",
    {
      log: (_id, entries) => {
        if (disk.full) throw new Error("database or disk is full");
        stored.push(...entries.map(({ message }) => message));
      },
    },
    () => 1,
  );
  for (let n = 0; n < 1_500; n += 1) log.write("info", `line ${n}`, "1");
  await vi.advanceTimersByTimeAsync(1_000);
  expect(() => log.flush()).toThrow("full");
  disk.full = false;
  log.write("error", "the last one", "1");
  await vi.advanceTimersByTimeAsync(1_000);
  expect(stored).toHaveLength(1_001);
  expect(stored.slice(-2)).toEqual(["line 1499", "the last one"]);
});
