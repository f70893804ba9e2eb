/** The end of a crash test: the host is in order again. */

import { expect } from "vitest";
import { findProblems } from "./host-objects.ts";
import type { Platform } from "./platform.ts";

/** What a test of this file has failed for: later ones are about what they do themselves, and do not wait for it again. */
const told = new Set<string>();

/**
 * Waits until the host is in order.
 * @param limitMs longer than what is left over takes to be noticed (agent/recovery/janitor.ts)
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
