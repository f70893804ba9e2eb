/** Why a node does not take a sandbox, in words for its owner and for the operator. Pure. */

import { type Candidate, type Demand, type PlacementPolicy, sharedDisk } from "./candidate.ts";

/**
 * What is asked of a node, in this order: a node is passed over for the first that it does not have. What comes later can
 * change sooner, so the error of a placement speaks of the nodes that came furthest.
 */
export const QUESTIONS = ["home", "labels", "region", "ability", "size", "readiness", "room"] as const;
export type Question = (typeof QUESTIONS)[number];

export interface Misfit {
  readonly at: Question;
  /** Clause about the node: "is draining". */
  readonly because: string;
}

const MIB = 1024 ** 2;

/**
 * @param claimed some node has the demand's region
 * @returns undefined: the node takes it
 */
export function misfitOf(
  node: Candidate,
  demand: Demand,
  policy: PlacementPolicy,
  claimed: boolean,
): Misfit | undefined {
  for (const at of QUESTIONS) {
    const because = ASKED[at](node, demand, policy, claimed);
    if (because !== undefined) return { at, because };
  }
  return undefined;
}

/** The first of these labels that a node does not have; undefined: it has them all. */
export function missingLabel(own: Candidate["labels"], wanted: Demand["labels"]): string | undefined {
  const missing = Object.entries(wanted).find(([name, value]) => own[name] !== value);
  return missing === undefined ? undefined : `${missing[0]}=${missing[1]}`;
}

type Ask = (node: Candidate, demand: Demand, policy: PlacementPolicy, claimed: boolean) => string | undefined;

const ASKED: Readonly<Record<Question, Ask>> = {
  home({ id }, { home }) {
    return home === undefined || home.nodeId === id ? undefined : `does not have ${home.has}`;
  },
  labels({ labels }, demand) {
    const missing = missingLabel(labels, demand.labels);
    return missing === undefined ? undefined : `does not have the label ${missing}`;
  },
  region({ labels }, { region }, _policy, claimed) {
    if (region === undefined) return undefined;
    const own = regionOf(labels);
    if (own === region.toLowerCase() || (own === "" && !claimed)) return undefined;
    return own === "" ? `has no region, and other nodes are in ${region}` : `is in region ${own}`;
  },
  ability({ noMemory, noNetwork }, { memory, network }) {
    if (memory === true && noMemory !== undefined) return `cannot restore memory (${noMemory})`;
    return network === true && noNetwork !== undefined ? `gives sandboxes no network (${noNetwork})` : undefined;
  },
  size(node, { cpuCount, least }, { cpuOvercommit }) {
    if (cpuCount > node.cpuCount * cpuOvercommit) return `has ${node.cpuCount} cores`;
    if (least === undefined) return undefined;
    if (least.cpuCount > node.cpuCount) return `has ${node.cpuCount} cores`;
    return least.memoryBytes > node.memoryTotalBytes ? `has ${mib(node.memoryTotalBytes)} MiB of memory` : undefined;
  },
  readiness({ id, status, refuses, unreached }, { exclude }) {
    if (refuses === true) return "does not serve this orchestrator's database";
    if (unreached === true) return "is not reached by the orchestrator";
    if (status !== "ready") return `is ${status}`;
    return exclude.get(id);
  },
  room(node, demand, policy) {
    const { sandboxCount, maxSandboxes } = node;
    if (sandboxCount >= maxSandboxes) return `is at its limit of ${maxSandboxes} sandboxes`;
    const cores = node.cpuCount * policy.cpuOvercommit;
    if (node.allocatedCpu + demand.cpuCount > cores) return `has promised ${node.allocatedCpu} of ${cores} cores`;
    const memory = node.memoryTotalBytes * policy.memoryOvercommit;
    if (node.allocatedMemoryBytes + demand.memoryBytes > memory)
      return `has promised ${mib(node.allocatedMemoryBytes)} of ${mib(memory)} MiB of memory`;
    return lackOfDisk(node, demand, policy);
  },
};

/** A node without a report of its disk has room: an older agent. */
export function lackOfDisk(
  { disk }: Candidate,
  { diskBytes }: Demand,
  { diskOvercommit }: PlacementPolicy,
): string | undefined {
  if (disk === undefined) return undefined;
  if (disk.short) return "has less disk than its reserve";
  const most = sharedDisk(disk) * diskOvercommit;
  if (diskBytes === 0 || disk.promisedBytes + diskBytes <= most) return undefined;
  return `has promised ${mib(disk.promisedBytes)} of ${mib(most)} MiB of disk`;
}

/** Lower case; empty: none. */
export function regionOf(labels: Candidate["labels"]): string {
  return (labels["region"] ?? "").toLowerCase();
}

function mib(bytes: number): number {
  return Math.floor(bytes / MIB);
}
