/** Gives a pooled container the size of the sandbox that it becomes. Nothing happens where it has that size already. */

import { fits, type Size, sameSize } from "../../containers/cgroup/limits.ts";
import type { Containers } from "../../containers/containers.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import type { ContainerStore } from "../../store/containers.ts";

/** False when it uses more memory than the size has: then the sandbox needs a container that starts with its own size. */
export function canBecome({ resources, cgroup }: Pick<LiveContainer, "resources" | "cgroup">, size: Size): boolean {
  if (size.memoryMB >= resources.memoryMB) return true;
  try {
    return fits(cgroup.usage(), size);
  } catch {
    // It has just ended, which its claim finds out.
    return true;
  }
}

interface ResizedDeps {
  readonly records: Pick<ContainerStore, "resize">;
  readonly containers: Pick<Containers, "chooseCpus">;
}

/**
 * Records and sets the size. Call it once the container's execution is recorded and before its processes run: a crash in
 * between leaves an execution that does not run, and the next agent process removes its container.
 */
export function resized(
  container: LiveContainer,
  { cpuCount, memoryMB }: Size,
  { records, containers }: ResizedDeps,
): LiveContainer {
  if (sameSize(container.resources, { cpuCount, memoryMB })) return container;
  records.resize(container.id, { cpuCount, memoryMB });
  container.cgroup.resize({ cpuCount, memoryMB, cpus: containers.chooseCpus(container.id, cpuCount) });
  return { ...container, resources: { ...container.resources, cpuCount, memoryMB } };
}
