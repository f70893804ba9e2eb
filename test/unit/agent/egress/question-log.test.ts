import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Noted } from "../../../../agent/egress/channel/decisions.ts";
import { openQuestionLog } from "../../../../agent/egress/dns/question-log.ts";
import type { NetworkLogEntry } from "../../../../shared/agent-api/network-shapes.ts";

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }));
afterEach(() => void vi.useRealTimers());

const failed = (name: string): Noted => ({
  protocol: "dns",
  address: "",
  port: 53,
  name,
  recordType: "A",
  verdict: "allow",
  rule: "failed NXDOMAIN",
  sentBytes: 0,
  receivedBytes: 0,
});

function opened() {
  const entries: NetworkLogEntry[] = [];
  const count = { suppressed: 0 };
  const log = openQuestionLog((more, suppressed) => {
    entries.push(...more);
    count.suppressed += suppressed;
  });
  return { entries, count, log };
}

test("a question is logged within a second, and its repetitions once a minute with their number", () => {
  const { entries, count, log } = opened();
  for (let second = 0; second < 180; second += 1) {
    log.note(failed("typo.test"));
    vi.advanceTimersByTime(1_000);
    if (second === 1) expect(entries).toMatchObject([{ name: "typo.test", count: 1 }]);
  }
  log.flush();
  expect(entries.length).toBeLessThanOrEqual(7);
  expect(entries.reduce((sum, entry) => sum + entry.count, 0)).toBe(180);
  expect(count.suppressed).toBe(0);
});

test("a flood of different names fills neither the log nor memory, and all are counted", () => {
  const { entries, count, log } = opened();
  const names = 200 * 60;
  for (let n = 0; n < names; n += 1) {
    log.note(failed(`${n}.flood.test`));
    vi.advanceTimersByTime(5);
  }
  log.flush();
  expect(entries.length).toBeGreaterThan(30);
  expect(entries.length).toBeLessThanOrEqual(30 + 60 + 1);
  expect(entries.length + count.suppressed).toBe(names);
  // An ordinary question is logged again soon after the flood.
  vi.advanceTimersByTime(2_000);
  log.note(failed("ordinary.test"));
  log.flush();
  expect(entries.at(-1)?.name).toBe("ordinary.test");
});

test("questions for two types of records, or with two reasons, are two entries", () => {
  const { entries, log } = opened();
  log.note(failed("a.test"));
  log.note({ ...failed("a.test"), recordType: "AAAA" });
  log.note({ ...failed("a.test"), rule: "failed timeout" });
  log.flush();
  expect(entries.map(({ recordType, rule }) => `${recordType} ${rule}`)).toEqual([
    "A failed NXDOMAIN",
    "AAAA failed NXDOMAIN",
    "A failed timeout",
  ]);
});
