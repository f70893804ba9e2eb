/**
 * Sixty sandboxes, or as many as SVC_TEST_LIVES says, are created, used and killed, ten at a time: each one works, and
 * afterwards the host is as it was before.
 */

import { beforeAll, expect, test } from "vitest";
import { countHostObjects, type HostObjects } from "../support/platform/host-objects.ts";
import { expectNoProblems } from "../support/platform/no-problems.ts";
import { openPlatform } from "../support/platform/platform.ts";
import { run, untilReady } from "../support/platform/programs.ts";

const platform = openPlatform();
/** What every life leaves shows in these many; what one of a hundred leaves needs a longer run (test/README.md). */
const LIVES = Number(process.env.SVC_TEST_LIVES ?? 60);

beforeAll(() => untilReady(platform), 90_000);

test(
  `${LIVES} times create, run and kill succeed, and nothing of them is left on the host`,
  async () => {
    // The base line includes what the platform makes once, on first use.
    await cycles(20);
    const before = await atRest();
    const failures = await cycles(LIVES);
    expect(failures).toEqual([]);
    await expect
      .poll(async () => excess(before, await countHostObjects(platform)), { timeout: 120_000, interval: 1000 })
      .toEqual([]);
    await expectNoProblems(platform);
  },
  300_000 + LIVES * 5_000,
);

async function cycles(total: number): Promise<readonly string[]> {
  const client = new URL("churn-client.ts", import.meta.url).pathname;
  const text = await run(process.execPath, ["--import", "tsx", client, String(total)]);
  const outcome = JSON.parse(text) as { total: number; failures: string[] };
  expect(outcome.total).toBe(total);
  return outcome.failures;
}

/** Counts again until two counts, two seconds apart, agree: removals are done, the pool is full, connections are closed. */
async function atRest(): Promise<HostObjects> {
  let last = await countHostObjects(platform);
  await expect
    .poll(
      async () => {
        const now = await countHostObjects(platform);
        const same = JSON.stringify(now) === JSON.stringify(last) && now.sandboxes === 0 && now.dead === 0;
        last = now;
        return same;
      },
      { timeout: 120_000, interval: 2000 },
    )
    .toBe(true);
  return last;
}

/**
 * Lists the counts above the base line. A smaller count is never a leak: the programs close connections that are idle for a
 * minute.
 */
function excess(before: HostObjects, now: HostObjects): readonly string[] {
  const flat = (counts: HostObjects) => ({
    ...counts,
    "children of the agent": counts.children.agent,
    "children of the orchestrator": counts.children.orchestrator,
    "descriptors of the agent": counts.descriptors.agent,
    "descriptors of the orchestrator": counts.descriptors.orchestrator,
  });
  const base: Record<string, unknown> = flat(before);
  return Object.entries(flat(now)).flatMap(([name, count]) => {
    const was = base[name];
    if (typeof count !== "number" || typeof was !== "number") return [];
    return count > was ? [`${name}: ${was} before, ${count} now`] : [];
  });
}
