import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { IdleMemory } from "../../../../envd/runtime/idle-memory.ts";

const MB = 1024 * 1024;

describe("an envd at rest", () => {
  let heap: number;
  let collections: number;
  let memory: IdleMemory;

  beforeEach(() => {
    vi.useFakeTimers();
    heap = 10 * MB;
    collections = 0;
    memory = new IdleMemory({
      used: () => heap,
      collect: () => {
        collections += 1;
        heap = 10 * MB;
      },
    });
  });

  afterEach(() => {
    memory.stop();
    vi.useRealTimers();
  });

  function workThenRest(heapAfter: number): void {
    heap = heapAfter;
    memory.touch();
    vi.advanceTimersByTime(30_000);
  }

  test("collects the first time, and after that not for what little a few requests leave", () => {
    workThenRest(10 * MB);
    workThenRest(10.9 * MB);
    expect(collections).toBe(1);
  });

  test("collects once after a burst of work", () => {
    workThenRest(10 * MB);
    workThenRest(30 * MB);
    vi.advanceTimersByTime(600_000);
    expect([collections, heap]).toEqual([2, 10 * MB]);
  });

  test("waits until the work is over", () => {
    workThenRest(10 * MB);
    heap = 30 * MB;
    for (let second = 0; second < 60; second += 1) {
      memory.touch();
      vi.advanceTimersByTime(1_000);
    }
    expect(collections).toBe(1);
    vi.advanceTimersByTime(20_000);
    expect(collections).toBe(2);
  });

  test("has no timer", () => {
    workThenRest(12 * MB);
    expect(vi.getTimerCount()).toBe(0);
  });
});
