import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { anySignal } from "../../../../shared/program/any-signal.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Rejects when the time limit comes; only the listener refers to the signal. */
function limited(ms: number, other: AbortSignal): Promise<never> {
  const signal = anySignal(other, AbortSignal.timeout(ms));
  return new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(new Error("the limit came")), { once: true }),
  );
}

test("a time limit in a combined signal still aborts after a garbage collection", async () => {
  const other = new AbortController();
  const waiting = limited(300, other.signal);
  const rounds = setInterval(collect, 20);
  try {
    await expect(waiting).rejects.toThrow("the limit came");
  } finally {
    clearInterval(rounds);
  }
});

test("a time limit in nested combined signals still aborts after a garbage collection", async () => {
  const other = new AbortController();
  const nested = () => limited(10_000, anySignal(other.signal, AbortSignal.timeout(300)));
  const waiting = nested();
  const rounds = setInterval(collect, 20);
  try {
    await expect(waiting).rejects.toThrow("the limit came");
  } finally {
    clearInterval(rounds);
  }
});

test("a combined signal aborts with the first of its signals, and with its reason", () => {
  const [one, two] = [new AbortController(), new AbortController()];
  const signal = anySignal(one.signal, two.signal);
  two.abort(new Error("second"));
  expect([signal.aborted, (signal.reason as Error).message]).toEqual([true, "second"]);
});
