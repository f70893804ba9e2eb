/** Ends of sandboxes by the agent itself, while somebody sets the clock of its machine. */

import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { createExpiry } from "../../../../agent/sandboxes/expiry.ts";
import { createLog } from "../../../../shared/program/log.ts";

const log = createLog({ component: "test", level: "silent" });
const HOUR_MS = 3_600_000;
const GRACE_MS = 30_000;

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000_000 }));
afterEach(() => void vi.useRealTimers());

/** A node with a sandbox that is to end in ten minutes. */
function node() {
  const running = [{ executionId: "e1", endAt: Date.now() + 600_000 }];
  const ended: number[] = [];
  const contact = { last: Date.now(), at: performance.now() };
  const since = performance.now();
  const expiry = createExpiry({
    running: () => running,
    lastContact: () => contact,
    graceMs: GRACE_MS,
    end: () => {
      running.splice(0);
      ended.push(performance.now() - since);
      return Promise.resolve();
    },
    log,
  });
  onTestFinished(() => expiry.stop());
  expiry.start();
  const answered = () => Object.assign(contact, { last: Date.now(), at: performance.now() });
  const set = (byMs: number) => void vi.setSystemTime(Date.now() + byMs);
  return { running, ended, expiry, answered, set };
}

test.each([HOUR_MS, -HOUR_MS])(
  "a clock that is set by %i ms ends no sandbox of a node whose orchestrator answers, also when others start and end",
  (byMs) => {
    const { ended, expiry, answered, set } = node();
    for (let round = 0; round < 20; round++) {
      vi.advanceTimersByTime(5_000);
      if (round === 10) set(byMs);
      // As at each start and end of another sandbox, before the next answer.
      expiry.changed();
      vi.advanceTimersByTime(100);
      answered();
    }
    expect(ended).toEqual([]);
  },
);

test.each([HOUR_MS, -HOUR_MS])(
  "a clock that is set by %i ms while the orchestrator is away ends a sandbox when its time has passed and the grace",
  (byMs) => {
    const { ended, expiry, set } = node();
    vi.advanceTimersByTime(60_000);
    set(byMs);
    expiry.changed();
    vi.advanceTimersByTime(2 * HOUR_MS);
    expect(ended.map(Math.round)).toEqual([600_000 + GRACE_MS]);
  },
);
