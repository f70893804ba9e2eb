/** What one node has on its machine beside its warm pool, counted, so that a test finds what was left over. */

import { readdir, readFile } from "node:fs/promises";
import { countNodeObjects } from "./host-objects.ts";
import type { Platform } from "./platform.ts";
import { disksOfNode } from "./programs.ts";

/** Each count by what it counts. */
export type BaseLine = ReadonlyMap<string, number>;

/** Processes of a container of the warm pool: the first one, envd, and envd's helper. */
const PROCESSES_OF_POOLED = 3;
/** Of a container with a disk of its own: the disk, and the file system that the sandbox sees. */
const MOUNTS_OF_POOLED = 2;

/** What belongs to the containers of the warm pool is taken off, because the pool grows with the demand. */
export async function countBesidePool(platform: Platform): Promise<BaseLine> {
  const { pooled, ...objects } = await countNodeObjects(platform);
  return new Map([
    ["containers of sandboxes", objects.sandboxes],
    ["dead containers", objects.dead],
    ["namespaces", objects.namespaces - pooled],
    ["links", objects.links - pooled],
    ["pinned addresses", objects.pinned - pooled],
    ["open destinations", objects.open],
    ["annotations", objects.annotations - pooled],
    ["processes", objects.processes - pooled * PROCESSES_OF_POOLED],
    ["mounts", (await mountsOf(platform)) - pooled * MOUNTS_OF_POOLED],
    ["loop devices", (await loopsOf(platform)).length - pooled],
    ["disk images", (await imagesOf(platform)) - pooled],
  ]);
}

/** The directories of what is mounted: the state, and the disks where they lie elsewhere. */
const rootsOf = (platform: Platform) => [`${platform.paths.state}/`, `${disksOfNode(platform)}/`];

/** The loop devices of files in these directories, also of deleted ones. */
export async function loopsOf(platform: Platform): Promise<readonly string[]> {
  const devices = (await readdir("/sys/block")).filter((name) => name.startsWith("loop"));
  const files = await Promise.all(devices.map(async (name) => [name, await fileOf(name)] as const));
  const roots = rootsOf(platform);
  return files.filter(([, file]) => roots.some((root) => file.startsWith(root))).map(([name]) => name);
}

/** A device without a file has no such page. */
function fileOf(device: string): Promise<string> {
  return readFile(`/sys/block/${device}/loop/backing_file`, "utf8").catch(() => "");
}

async function mountsOf(platform: Platform): Promise<number> {
  const roots = rootsOf(platform);
  const mounts = await readFile("/proc/self/mountinfo", "utf8");
  return mounts.split("\n").filter((line) => roots.some((root) => line.includes(` ${root}`))).length;
}

async function imagesOf(platform: Platform): Promise<number> {
  const names = await readdir(disksOfNode(platform)).catch(() => []);
  return names.filter((name) => name.endsWith(".img")).length;
}
