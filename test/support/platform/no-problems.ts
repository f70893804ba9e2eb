/** The end of a crash test: waits until the host is in order again. */

import { expect } from "vitest";
import { findProblems } from "./host-objects.ts";
import type { Platform } from "./platform.ts";

/** Problems for which a test of this file has failed: later tests neither fail for them nor wait for them again. */
const told = new Set<string>();

/**
 * Waits until the host is in order.
 * @param limitMs longer than the agent takes to notice leftovers (agent/recovery/janitor.ts)
 */
export async function expectNoProblems(platform: Platform, limitMs = 90_000): Promise<void> {
  const problems = { now: [] as readonly string[] };
  const look = async () => {
    problems.now = (await findProblems(platform)).filter((one) => !told.has(one));
    return problems.now;
  };
  try {
    await expect.poll(look, { timeout: limitMs, interval: 500 }).toEqual([]);
  } finally {
    for (const one of problems.now) told.add(one);
  }
}
