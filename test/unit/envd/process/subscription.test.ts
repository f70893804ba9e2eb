import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { STALLED_MS, Subscription } from "../../../../envd/process/subscription.ts";

const never = new AbortController().signal;
const chunk = (size: number) => ({ stream: "stdout" as const, bytes: new Uint8Array(size) });

function follower() {
  const seen: string[] = [];
  const hooks = { drained: () => void seen.push("drained"), closed: () => void seen.push("closed") };
  return { seen, subscription: new Subscription<string>(hooks) };
}

test("chunks come in order, and the end after the last", async () => {
  const { subscription } = follower();
  subscription.push(chunk(1));
  subscription.push(chunk(2));
  subscription.end("done");
  expect(await subscription.next(1_000, never)).toEqual(chunk(1));
  expect(await subscription.next(1_000, never)).toEqual(chunk(2));
  expect(await subscription.next(1_000, never)).toEqual({ end: "done" });
});

test("a slow follower's buffer is full until the follower has caught up", async () => {
  const { subscription, seen } = follower();
  while (!subscription.full) subscription.push(chunk(64 * 1024));
  expect(seen).toEqual([]);
  await subscription.next(1_000, never);
  expect([subscription.full, seen]).toEqual([false, ["drained"]]);
});

test("a silent process yields nothing, so that the stream can send a keepalive", async () => {
  expect(await follower().subscription.next(1, never)).toBeUndefined();
});

test("an abort ends a waiting read with the reason of the signal", async () => {
  const leaving = new AbortController();
  const next = follower().subscription.next(60_000, leaving.signal);
  leaving.abort(new Error("left"));
  await expect(next).rejects.toThrow("left");
});

describe("a follower whose queue is full", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const full = () => {
    const made = follower();
    while (!made.subscription.full) made.subscription.push(chunk(64 * 1024));
    return made;
  };

  test("is dropped when it takes nothing for the limit, and hears so when it reads again", async () => {
    const { subscription, seen } = full();
    vi.advanceTimersByTime(STALLED_MS - 1);
    expect(seen).toEqual([]);
    vi.advanceTimersByTime(1);
    expect([seen, subscription.full]).toEqual([["closed"], false]);
    expect(await subscription.next(1_000, never)).toBe("dropped");
  });

  test("stays for as long as it takes a little", async () => {
    const { subscription, seen } = full();
    for (let round = 0; round < 10; round += 1) {
      subscription.push(chunk(64 * 1024));
      vi.advanceTimersByTime(STALLED_MS - 1);
      expect(await subscription.next(1_000, never)).toHaveProperty("bytes.length", 64 * 1024);
    }
    expect(seen).toEqual([]);
  });

  test("has all the time when its queue is no longer full, or its process is over", async () => {
    const { subscription, seen } = full();
    await subscription.next(1_000, never);
    vi.advanceTimersByTime(10 * STALLED_MS);
    const { subscription: ended, seen: seenByEnded } = full();
    ended.end("done");
    vi.advanceTimersByTime(10 * STALLED_MS);
    expect([seen, seenByEnded]).toEqual([["drained"], []]);
    expect(await ended.next(1_000, never)).toEqual(chunk(64 * 1024));
  });
});
