/** When a fake agent reports: by the clock, and when a test says so. */

import type { HeartbeatReply } from "../../../shared/agent-api/routes.ts";

export interface FakeReports {
  /** At once, beside a report that is under way. */
  now(): Promise<HeartbeatReply>;
  /** Behind a report by the clock that is under way, so that this one is the newer one for the orchestrator too. */
  next(): Promise<HeartbeatReply>;
  /** Begins to report by the clock. @param everyMs 0: it never does */
  start(everyMs: number): void;
  stop(): void;
}

export function createFakeReports(send: () => Promise<HeartbeatReply>): FakeReports {
  const state = { underWay: 0, byClock: Promise.resolve() as Promise<unknown> };
  let timer: NodeJS.Timeout | undefined;

  async function now(): Promise<HeartbeatReply> {
    state.underWay++;
    try {
      return await send();
    } finally {
      state.underWay--;
    }
  }

  /** As the agent does: it sends no second report while one is under way, because the older one may arrive last. */
  function tick(): void {
    if (state.underWay === 0) state.byClock = now().catch(() => undefined);
  }

  return {
    now,
    async next() {
      await state.byClock;
      return now();
    },
    start(everyMs) {
      if (everyMs > 0) timer = setInterval(tick, everyMs);
    },
    stop: () => clearInterval(timer),
  };
}
