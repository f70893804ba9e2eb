/** What becomes of input to a terminal whose connection gives no sign. */

import { afterEach, expect, test, vi } from "vitest";
import { pageFile } from "../page-files.ts";

const { inputQueue } = await pageFile<{
  readonly inputQueue: (
    send: (base64: string, limit: AbortSignal) => Promise<unknown>,
    telling: { state(text: string): void; ready(): Promise<unknown> },
  ) => { add(bytes: Uint8Array): void };
}>("sandbox/shell/input-queue.ts");

afterEach(() => {
  vi.useRealTimers();
});

const typed = (text: string) => new TextEncoder().encode(text);

test("input on a dead connection is given up after a minute, and what is typed then is sent", async () => {
  vi.useFakeTimers();
  const sent: string[] = [];
  const told: string[] = [];
  const queue = inputQueue(
    (base64, limit) => {
      sent.push(atob(base64));
      if (sent.length > 1) return Promise.resolve();
      return new Promise((_resolve, reject) => limit.addEventListener("abort", () => reject(limit.reason as Error)));
    },
    { state: (text) => void told.push(text), ready: () => Promise.resolve() },
  );
  queue.add(typed("ls"));
  await vi.advanceTimersByTimeAsync(59_000);
  queue.add(typed("lost"));
  expect([sent, told]).toEqual([["ls"], []]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(told).toEqual(["what was typed last may not have arrived: nothing has answered"]);
  queue.add(typed("pwd"));
  await vi.advanceTimersByTimeAsync(0);
  expect(sent).toEqual(["ls", "pwd"]);
});

test("input keeps its order, and goes together while a piece is on its way", async () => {
  const sent: string[] = [];
  const queue = inputQueue((base64) => Promise.resolve(void sent.push(atob(base64))), {
    state: () => undefined,
    ready: () => Promise.resolve(),
  });
  for (const text of ["a", "b", "c"]) queue.add(typed(text));
  await vi.waitFor(() => expect(sent.join("")).toBe("abc"));
  expect(sent).toEqual(["abc"]);
});
