import { getEventListeners } from "node:events";
import { expect, onTestFinished, test, vi } from "vitest";
import { withDeadline, within } from "../../../../shared/program/deadline.ts";

const never = new Promise<never>(() => undefined);
const late = () => "late";

test("work that ends before the limit gives its own result or error, and leaves no listener", async () => {
  const { signal } = new AbortController();
  expect(await withDeadline(Promise.resolve("done"), signal, late)).toBe("done");
  await expect(withDeadline(Promise.reject(new Error("broken")), signal, late)).rejects.toThrow("broken");
  expect(getEventListeners(signal, "abort")).toEqual([]);
  expect(await withDeadline(Promise.resolve("done"), 60_000, late)).toBe("done");
});

test("work that goes on at the limit is left alone: its caller gets what `late` gives, or its error", async () => {
  expect(await withDeadline(never, 1, late)).toBe("late");
  const limit = new AbortController();
  const waiting = withDeadline(never, limit.signal, () => {
    throw new Error("too late");
  });
  limit.abort();
  await expect(waiting).rejects.toThrow("too late");
  expect(await withDeadline(never, AbortSignal.abort(), late)).toBe("late");
});

test("work that fails after the limit is no unhandled rejection", async () => {
  let fail: (error: Error) => void = () => undefined;
  const work = new Promise<never>((_, reject) => {
    fail = reject;
  });
  expect(await withDeadline(work, 1, late)).toBe("late");
  fail(new Error("afterwards"));
  await new Promise((resolve) => setImmediate(resolve));
});

test("work within a limit of time has a signal that aborts then, and no timer is left when it ends before", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  expect(await within(600_000, (limit) => Promise.resolve(limit.aborted))).toBe(false);
  await expect(within(600_000, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  expect(vi.getTimerCount()).toBe(0);
  const overdue = within(
    50,
    (limit) => new Promise((_, reject) => limit.addEventListener("abort", () => reject(limit.reason))),
  );
  const refusal = expect(overdue).rejects.toMatchObject({ name: "TimeoutError" });
  await vi.advanceTimersByTimeAsync(50);
  await refusal;
});
