/** What a fleet has on the host beside its sandboxes, counted, so that a test finds what was left over. */

import { readdir, readFile } from "node:fs/promises";
import { expect } from "vitest";
import {
  childrenOf,
  countNodeObjects,
  countOrphans,
  descriptorsOf,
  listedSandboxes,
  pids,
} from "../platform/host-objects.ts";
import { type Fleet, type FleetNode, memberPid, members, nameOf } from "./fleet.ts";

/** Each count by what it counts. */
export type BaseLine = ReadonlyMap<string, number>;

/** Processes of a container of the warm pool: the first one, envd, and envd's helper. */
const PROCESSES_OF_POOLED = 3;
/** Of a container with a disk of its own: the disk, and the file system that the sandbox sees. */
const MOUNTS_OF_POOLED = 2;
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

/** What belongs to the containers of a warm pool is taken off, because the pool grows with the demand. */
async function count(fleet: Fleet): Promise<BaseLine> {
  const counts = new Map<string, number>();
  for (const node of fleet.nodes) {
    const { pooled, ...objects } = await countNodeObjects(node.platform);
    const of = (what: string) => `${what} of ${node.id}`;
    counts.set(of("containers of sandboxes"), objects.sandboxes);
    counts.set(of("dead containers"), objects.dead);
    counts.set(of("namespaces"), objects.namespaces - pooled);
    counts.set(of("links"), objects.links - pooled);
    counts.set(of("pinned addresses"), objects.pinned - pooled);
    counts.set(of("open destinations"), objects.open);
    counts.set(of("annotations"), objects.annotations - pooled);
    counts.set(of("processes"), objects.processes - pooled * PROCESSES_OF_POOLED);
    counts.set(of("mounts"), (await mountsOf(node)) - pooled * MOUNTS_OF_POOLED);
    counts.set(of("disk images"), (await imagesOf(node)) - pooled);
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

async function mountsOf({ platform }: FleetNode): Promise<number> {
  const mounts = await readFile("/proc/self/mountinfo", "utf8");
  return mounts.split("\n").filter((line) => line.includes(` ${platform.paths.state}/`)).length;
}

async function imagesOf({ platform }: FleetNode): Promise<number> {
  const names = await readdir(`${platform.paths.state}/agent/disks`).catch(() => []);
  return names.filter((name) => name.endsWith(".img")).length;
}

async function criuProcesses(): Promise<number> {
  let found = 0;
  for (const pid of await pids()) {
    const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (/(?:^|\/)criu(?:\.real)?\0/.test(command) || /(?:dump|restore) --rpc/.test(command)) found++;
  }
  return found;
}
