import { getEventListeners } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { withDeadline, within } from "../../../../shared/program/deadline.ts";
import { areCollected, collect } from "../../../support/runner/garbage.ts";

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

/** Rejects when the limit comes; only the listener refers to the combined signals. */
function limited(ms: number, other: AbortSignal): Promise<never> {
  return within(ms, (limit) => {
    const signal = AbortSignal.any([AbortSignal.any([other, new AbortController().signal]), limit]);
    return new Promise<never>((_, reject) =>
      signal.addEventListener("abort", () => reject(new Error("the limit came")), { once: true }),
    );
  });
}

test("a limit in combined signals aborts them also after a garbage collection", async () => {
  const { signal } = new AbortController();
  const waiting = limited(300, signal);
  const rounds = setInterval(collect, 20);
  try {
    await expect(waiting).rejects.toThrow("the limit came");
  } finally {
    clearInterval(rounds);
  }
});

/** Apart from the test, so that it refers to nothing else of it. */
function listenerOf(request: { readonly body: string }): () => string {
  return () => request.body;
}

test("what has not stopped listening to a combined signal is collected once nobody can abort that signal any more", async () => {
  const work = async () => {
    const request = { body: "large" };
    const caller = new AbortController();
    await within(600_000, (limit) => {
      AbortSignal.any([caller.signal, limit]).addEventListener("abort", listenerOf(request));
      return Promise.resolve();
    });
    return new WeakRef(request);
  };
  const request = await work();
  await expect.poll(() => areCollected(request)).toBe(true);
});

const ROOT = join(import.meta.dirname, "../../../..");

// Node refers to such a limit weakly: once collected, it never comes.
test("no long-running program combines a signal of AbortSignal.timeout with others", () => {
  const files = globSync("{agent,envd,interpreter,orchestrator,shared}/**/*.ts", { cwd: ROOT });
  const combined = files.filter((file) => {
    const text = readFileSync(join(ROOT, file), "utf8");
    return /AbortSignal\.any\(\[[^\]]*AbortSignal\.timeout/.test(text);
  });
  expect(files.length).toBeGreaterThan(500);
  expect(combined).toEqual([]);
});
