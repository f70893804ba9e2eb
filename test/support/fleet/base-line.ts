/** What a fleet has on the host beside its sandboxes, counted, so that a test finds what was left over. */

import { readFile } from "node:fs/promises";
import { expect } from "vitest";
import { type BaseLine, countBesidePool } from "../platform/beside-pool.ts";
import { childrenOf, countOrphans, descriptorsOf, listedSandboxes, pids } from "../platform/host-objects.ts";
import { type Fleet, memberPid, members, nameOf } from "./fleet.ts";

/** Connections that programs keep to each other come and go; a leak of one for each operation is more. */
const MORE_DESCRIPTORS = 40;

/** Counts again until two counts, two seconds apart, agree and no sandbox is left. */
export async function baseline(fleet: Fleet): Promise<BaseLine> {
  const seen = { last: await count(fleet) };
  const atRest = async () => {
    const now = await count(fleet);
    const same = steady(now) === steady(seen.last);
    seen.last = now;
    return same && (await left(fleet)) === 0;
  };
  await expect.poll(atRest, { timeout: 120_000, interval: 2_000 }).toBe(true);
  return seen.last;
}

/** Everything but connections, which programs open and close at any time. */
function steady(counts: BaseLine): string {
  return JSON.stringify([...counts].filter(([what]) => !what.startsWith("descriptors")));
}

/** Waits until nothing is above the base line. A smaller count is no leak. */
export async function expectAtBaseline(fleet: Fleet, before: BaseLine, limitMs = 180_000): Promise<void> {
  const above = async () =>
    [...(await count(fleet))].flatMap(([what, now]) => {
      const was = (before.get(what) ?? 0) + (what.startsWith("descriptors") ? MORE_DESCRIPTORS : 0);
      return now > was ? [`${what}: ${was} at most, ${now} now`] : [];
    });
  await expect.poll(above, { timeout: limitMs, interval: 2_000 }).toEqual([]);
}

/** Sandboxes that are there, running or paused. */
async function left({ orchestrators: [first] }: Fleet): Promise<number> {
  if (first === undefined) return 0;
  const running = await listedSandboxes(first.platform, "running");
  return running.length + (await listedSandboxes(first.platform, "paused")).length;
}

async function count(fleet: Fleet): Promise<BaseLine> {
  const counts = new Map<string, number>();
  for (const node of fleet.nodes) {
    for (const [what, there] of await countBesidePool(node.platform)) counts.set(`${what} of ${node.id}`, there);
  }
  const { orphanShims, orphanCgroups } = await countOrphans();
  counts.set("shims of no container", orphanShims);
  counts.set("cgroups of no container", orphanCgroups);
  counts.set("processes of CRIU", await criuProcesses());
  for (const member of members(fleet)) {
    const pid = await memberPid(member);
    counts.set(`children of the ${nameOf(member)}`, await childrenOf(pid));
    counts.set(`descriptors of the ${nameOf(member)}`, await descriptorsOf(pid));
  }
  return counts;
}

async function criuProcesses(): Promise<number> {
  let found = 0;
  for (const pid of await pids()) {
    const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (/(?:^|\/)criu(?:\.real)?\0/.test(command) || /(?:dump|restore) --rpc/.test(command)) found++;
  }
  return found;
}
