/**
 * Sixty sandboxes, or as many as SVC_TEST_LIVES says, are created, used and killed, ten at a time: each one works, and
 * afterwards the host is as it was before.
 */

import { beforeAll, expect, test } from "vitest";
import { countHostObjects, type HostObjects, wantedInPool } from "../support/platform/host-objects.ts";
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
    await expect.poll(() => excess(before), { timeout: 120_000, interval: 1000 }).toEqual([]);
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

/** Processes of a container of the warm pool: the first one, envd, and envd's helper. */
const PROCESSES_OF_POOLED = 3;

/** Counts again until two counts, two seconds apart, agree: removals are done, and connections are closed. */
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
 * minute. The warm pool may hold as much as the orchestrator wants, which grows with the starts of the last minutes and is
 * reached slowly on a busy machine: what belongs to the pool's containers is taken off both counts.
 */
async function excess(before: HostObjects): Promise<readonly string[]> {
  const now = await countHostObjects(platform);
  const base: Record<string, unknown> = withoutPool(before);
  const above = Object.entries(withoutPool(now)).flatMap(([name, count]) => {
    const was = base[name];
    if (typeof count !== "number" || typeof was !== "number") return [];
    return count > was ? [`${name}: ${was} before, ${count} now`] : [];
  });
  const wanted = await wantedInPool(platform);
  return now.pooled > wanted ? [...above, `pooled: ${wanted} wanted, ${now.pooled} now`] : above;
}

function withoutPool({ pooled, ...counts }: HostObjects): Record<string, unknown> {
  return {
    ...counts,
    namespaces: counts.namespaces - pooled,
    links: counts.links - pooled,
    pinned: counts.pinned - pooled,
    annotations: counts.annotations - pooled,
    processes: counts.processes - pooled * PROCESSES_OF_POOLED,
    "children of the agent": counts.children.agent,
    "children of the orchestrator": counts.children.orchestrator,
    "descriptors of the agent": counts.descriptors.agent,
    "descriptors of the orchestrator": counts.descriptors.orchestrator,
  };
}
