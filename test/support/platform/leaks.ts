/** What sandboxes that have ended leave on the host: the counts before them, and what is above these afterwards. */

import { expect } from "vitest";
import { countDiskObjects, type DiskObjects } from "./disk-objects.ts";
import { countHostObjects, type HostObjects, wantedInPool } from "./host-objects.ts";
import type { Platform } from "./platform.ts";

/** Processes of a container of the warm pool: the first one, envd, and envd's helper. */
const PROCESSES_OF_POOLED = 3;
const LIMIT_MS = 240_000;

type Objects = HostObjects & DiskObjects;

/** Counts again until two counts, two seconds apart, agree: removals are done, and connections are closed. */
export async function countAtRest(platform: Platform): Promise<Objects> {
  let last = await countObjects(platform);
  await expect
    .poll(
      async () => {
        const now = await countObjects(platform);
        const same = JSON.stringify(now) === JSON.stringify(last) && now.sandboxes === 0 && now.dead === 0;
        last = now;
        return same;
      },
      { timeout: LIMIT_MS, interval: 2000 },
    )
    .toBe(true);
  return last;
}

/** Waits until nothing is above the base line. */
export async function expectNothingLeft(platform: Platform, before: Objects): Promise<void> {
  await expect.poll(() => excess(platform, before), { timeout: LIMIT_MS, interval: 1000 }).toEqual([]);
}

/**
 * Lists the counts above the base line. A smaller count is never a leak: the programs close connections that are idle for a
 * minute. The warm pool may hold as much as the orchestrator wants, which grows with the starts of the last minutes and is
 * reached slowly on a busy machine: what belongs to the pool's containers is taken off both counts.
 */
async function excess(platform: Platform, before: Objects): Promise<readonly string[]> {
  const now = await countObjects(platform);
  const base: Record<string, unknown> = withoutPool(before);
  const above = Object.entries(withoutPool(now)).flatMap(([name, count]) => {
    const was = base[name];
    if (typeof count !== "number" || typeof was !== "number") return [];
    return count > was ? [`${name}: ${was} before, ${count} now`] : [];
  });
  const wanted = await wantedInPool(platform);
  return now.pooled > wanted ? [...above, `pooled: ${wanted} wanted, ${now.pooled} now`] : above;
}

async function countObjects(platform: Platform): Promise<Objects> {
  return { ...(await countHostObjects(platform)), ...(await countDiskObjects(platform)) };
}

function withoutPool({ pooled, ...counts }: Objects): Record<string, unknown> {
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
