/** How well a node that fits suits a sandbox. Pure. */

import { type Candidate, type Demand, type PlacementPolicy, sharedDisk } from "./candidate.ts";

/** Weight of the measured load beside the promised load. */
const BUSY_WEIGHT = 0.5;
/** What a node without the image costs against one with it: the transfer is longer than a start on a machine half as busy. */
const WITHOUT_IMAGE = 0.5;
/** A container that waits saves the boot, a few hundred milliseconds: it decides between nodes that are about as busy. */
const WITHOUT_POOLED = 0.05;

/**
 * Lower is better: the greatest of the node's shares of promised cores (with half of its measured load), memory and disk
 * after this placement, because the scarcest of them is what runs out, and what the node lacks to start it fast.
 */
export function score(node: Candidate, demand: Demand, policy: PlacementPolicy): number {
  if (node.cpuCount === 0) return Number.MAX_VALUE;
  const busyCores = (node.cpuPercent / 100) * node.cpuCount;
  const cpu = (demand.cpuCount + node.allocatedCpu + BUSY_WEIGHT * busyCores) / (policy.cpuOvercommit * node.cpuCount);
  const memory = share(demand.memoryBytes + node.allocatedMemoryBytes, node.memoryTotalBytes * policy.memoryOvercommit);
  const disk =
    node.disk === undefined
      ? 0
      : share(node.disk.promisedBytes + demand.diskBytes, sharedDisk(node.disk) * policy.diskOvercommit);
  return Math.max(cpu, memory, disk) + lacking(node, demand);
}

function lacking({ id, pools = [] }: Candidate, { build }: Demand): number {
  if (build === undefined || pools.some(({ buildId, ready }) => buildId === build.id && ready > 0)) return 0;
  const hasImage = build.nodeId === undefined || build.nodeId === id || build.holders?.has(id) === true;
  return hasImage ? WITHOUT_POOLED : WITHOUT_POOLED + WITHOUT_IMAGE;
}

function share(used: number, of: number): number {
  return of === 0 ? 0 : used / of;
}
