/**
 * Sixty sandboxes are created, used and killed, ten at a time: each one works, and afterwards the host is as it was before. A longer
 * run, of as many as SVC_TEST_LIVES says, has forks, rewinds and bursts of ten among them.
 */

import { beforeAll, expect, test } from "vitest";
import { countAtRest, expectNothingLeft } from "../support/platform/leaks.ts";
import { expectNoProblems } from "../support/platform/no-problems.ts";
import { openPlatform } from "../support/platform/platform.ts";
import { run, untilReady } from "../support/platform/programs.ts";

const platform = openPlatform();
/** What every life leaves shows in these many; what one of a hundred leaves needs a longer run (test/README.md). */
const LIVES = Number(process.env.SVC_TEST_LIVES ?? 60);
const KIND = process.env.SVC_TEST_LIVES === undefined ? "alone" : "mixed";

beforeAll(() => untilReady(platform));

test(
  `${LIVES} times create, run and kill succeed, and nothing of them is left on the host`,
  async () => {
    // The base line includes what the platform makes once, on first use.
    await cycles(20);
    const before = await countAtRest(platform);
    const failures = await cycles(LIVES);
    expect(failures).toEqual([]);
    await expectNothingLeft(platform, before);
    await expectNoProblems(platform);
  },
  900_000 + LIVES * 5_000,
);

async function cycles(total: number): Promise<readonly string[]> {
  const client = new URL("churn-client.ts", import.meta.url).pathname;
  const limitMs = 300_000 + total * 5_000;
  const text = await run(process.execPath, ["--import", "tsx", client, String(total), KIND], {}, limitMs);
  const outcome = JSON.parse(text) as { total: number; failures: string[] };
  expect(outcome.total).toBe(total);
  return outcome.failures;
}
