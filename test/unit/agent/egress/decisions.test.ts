import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { decisionBatches, type Noted } from "../../../../agent/egress/channel/decisions.ts";
import type { NetworkLogEntry } from "../../../../shared/agent-api/network-shapes.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const entry = (more: Partial<Noted> = {}): Noted => ({
  protocol: "tcp",
  address: "203.0.113.1",
  port: 443,
  verdict: "allow",
  rule: "default",
  sentBytes: 1,
  receivedBytes: 2,
  ...more,
});

function said() {
  const list: { entries: readonly NetworkLogEntry[]; suppressed: number }[] = [];
  const batches = decisionBatches(
    (entries, suppressed) => list.push({ entries, suppressed }),
    () => 1_000,
  );
  return { list, batches };
}

test("equal decisions become one entry, one second after the first of them", () => {
  const { list, batches } = said();
  batches.note(entry());
  batches.note(entry({ at: 900 }));
  batches.note(entry({ port: 80 }));
  vi.advanceTimersByTime(999);
  expect(list).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(list).toMatchObject([
    {
      entries: [
        { at: 900, count: 2, sentBytes: 2, receivedBytes: 4 },
        { port: 80, count: 1 },
      ],
      suppressed: 0,
    },
  ]);
});

test("decisions are sent at most once a second, and nothing is sent without new ones", () => {
  const { list, batches } = said();
  for (let ms = 0; ms < 5_000; ms += 10) {
    batches.note(entry());
    vi.advanceTimersByTime(10);
  }
  expect(list.length).toBeLessThanOrEqual(5);
  vi.advanceTimersByTime(1_000);
  const before = list.length;
  vi.advanceTimersByTime(60_000);
  batches.flush();
  expect(list).toHaveLength(before);
});

test("of more than a hundred different decisions the rest is only counted", () => {
  const { list, batches } = said();
  for (let port = 1; port <= 150; port += 1) batches.note(entry({ port }));
  batches.note(entry({ port: 1 }));
  batches.flush();
  expect(list).toHaveLength(1);
  expect(list[0]?.entries).toHaveLength(100);
  expect(list[0]).toMatchObject({
    suppressed: 50,
    entries: expect.arrayContaining([expect.objectContaining({ port: 1, count: 2 })]),
  });
});
