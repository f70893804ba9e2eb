/** What a fleet has on the host beside its sandboxes, counted, and what its programs use, so that a test finds what was left over. */

import { readFile } from "node:fs/promises";
import { expect } from "vitest";
import { type BaseLine, countBesidePool } from "../platform/beside-pool.ts";
import { childrenOf, countOrphans, listedSandboxes, pids } from "../platform/host-objects.ts";
import { type Fleet, memberPid, members, nameOf } from "./fleet.ts";
import { type ProgramUses, programUses, restingUses, table, tooMuch } from "./memory.ts";

interface FleetBaseLine {
  readonly counts: BaseLine;
  readonly uses: ProgramUses;
}

/** Counts again until two counts, two seconds apart, agree and no sandbox is left. */
export async function baseline(fleet: Fleet): Promise<FleetBaseLine> {
  const seen = { last: await count(fleet) };
  const atRest = async () => {
    const now = await count(fleet);
    const same = JSON.stringify([...now]) === JSON.stringify([...seen.last]);
    seen.last = now;
    return same && (await left(fleet)) === 0;
  };
  await expect.poll(atRest, { timeout: 120_000, interval: 2_000 }).toBe(true);
  return { counts: seen.last, uses: await restingUses(fleet) };
}

/** Waits until nothing is above the base line, and prints what the programs use. A smaller count is no leak. */
export async function expectAtBaseline(fleet: Fleet, before: FleetBaseLine, limitMs = 180_000): Promise<void> {
  const seen = { uses: before.uses };
  const above = async () => {
    const counts = [...(await count(fleet))].flatMap(([what, now]) => {
      const was = before.counts.get(what) ?? 0;
      return now > was ? [`${what}: ${was} at most, ${now} now`] : [];
    });
    seen.uses = await programUses(fleet);
    return [...counts, ...tooMuch(before.uses, seen.uses)];
  };
  try {
    await expect.poll(above, { timeout: limitMs, interval: 2_000 }).toEqual([]);
  } finally {
    console.log(table(before.uses, seen.uses));
  }
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
    counts.set(`children of the ${nameOf(member)}`, await childrenOf(await memberPid(member)));
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
