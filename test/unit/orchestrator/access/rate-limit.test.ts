/** The limit of calls by one caller, with a clock of its own. */

import { describe, expect, test } from "vitest";
import { createRateLimiter } from "../../../../orchestrator/access/rate-limit.ts";

describe("rate limits", () => {
  test("allow a burst, then as many calls as the rate gives back, with Retry-After in whole seconds", () => {
    const clock = { now: 0 };
    const limiter = createRateLimiter(() => clock.now);
    const rate = { perSecond: 2, burst: 3 };
    for (const remaining of [2, 1, 0]) expect(limiter.take("a", rate)).toMatchObject({ limit: 3, remaining });
    expect(() => limiter.take("a", rate)).toThrow("Rate limit exceeded");
    try {
      limiter.take("a", rate);
    } catch (error) {
      expect(error).toMatchObject({ code: "rate_limited", retryAfterSeconds: 1 });
    }
    expect(limiter.take("b", rate).remaining).toBe(2);
    clock.now = 500;
    expect(limiter.take("a", rate).remaining).toBe(0);
    clock.now = 60_000;
    expect(limiter.take("a", rate)).toMatchObject({ remaining: 2, resetSeconds: 1 });
  });
});
