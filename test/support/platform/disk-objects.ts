/** What an instance holds on the host of disks and memory images, counted: mounts, loop devices, and files. */

import { readdir, readFile } from "node:fs/promises";
import { type ContainerInfo, containersOf } from "./host-objects.ts";
import type { Platform } from "./platform.ts";
import { disksOfNode } from "./programs.ts";

export interface DiskObjects {
  /** Mounts, loop devices and images of disks of containers that Docker does not know. */
  readonly strayMounts: number;
  readonly strayLoops: number;
  readonly strayDisks: number;
  /** Disks and memory images of snapshots, drafts included. */
  readonly storedDisks: number;
  readonly memoryImages: number;
}

interface Found {
  /** Of the container disks' directory. */
  readonly root: string;
  /** Lines of /proc/self/mountinfo. */
  readonly mounts: readonly string[];
  /** Files behind loop devices. */
  readonly loops: readonly string[];
  /** Names in the directory. */
  readonly names: readonly string[];
}

/** The name of a container's disk: other names in the directory are those of all disks, and of the agent's own probe. */
const CONTAINER = /^([0-9a-f]{64})(?:\.img)?$/;

export async function countDiskObjects(platform: Platform): Promise<DiskObjects> {
  const agent = `${platform.paths.state}/agent`;
  const root = disksOfNode(platform);
  // Before the containers: a container is made before its disk, and removed before it.
  const found = {
    root,
    mounts: (await readFile("/proc/self/mountinfo", "utf8")).split("\n"),
    loops: await loopFiles(),
    names: await list(root),
  };
  const containers = await containersOf(platform);
  return {
    ...strays(found, containers),
    storedDisks: (await list(`${root}/stored`)).length,
    memoryImages: (await list(`${agent}/snapshots`)).length,
  };
}

/** Pure. */
export function strays(
  { root, mounts, loops, names }: Found,
  containers: readonly Pick<ContainerInfo, "id">[],
): Pick<DiskObjects, "strayMounts" | "strayLoops" | "strayDisks"> {
  const known = new Set(containers.map(({ id }) => id));
  const isStray = (name: string) => {
    const id = CONTAINER.exec(name)?.[1];
    return id !== undefined && !known.has(id);
  };
  const below = (path: string) =>
    path.startsWith(`${root}/`) ? (path.slice(root.length + 1).split("/")[0] ?? "") : "";
  return {
    strayMounts: mounts.filter((line) => isStray(below(line.split(" ")[4] ?? ""))).length,
    strayLoops: loops.filter((path) => isStray(below(path.replace(/ \(deleted\)$/, "")))).length,
    strayDisks: names.filter(isStray).length,
  };
}

async function loopFiles(): Promise<string[]> {
  const loops = (await list("/sys/block")).filter((name) => /^loop\d+$/.test(name));
  const files = loops.map((name) => readFile(`/sys/block/${name}/loop/backing_file`, "utf8").catch(() => ""));
  return (await Promise.all(files)).map((path) => path.trim()).filter((path) => path !== "");
}

function list(directory: string): Promise<string[]> {
  return readdir(directory).catch(() => []);
}
