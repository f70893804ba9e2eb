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
  /** What nodes with this reason have in common, after their number: "draining", "without memory left". */
  readonly kind: string;
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
    const found = ASKED[at](node, demand, policy, claimed);
    if (found !== undefined) return { at, because: found[0], kind: found[1] };
  }
  return undefined;
}

/** The first of these labels that a node does not have; undefined: it has them all. */
export function missingLabel(own: Candidate["labels"], wanted: Demand["labels"]): string | undefined {
  const missing = Object.entries(wanted).find(([name, value]) => own[name] !== value);
  return missing === undefined ? undefined : `${missing[0]}=${missing[1]}`;
}

/** The clause about the node, and its kind. */
type Found = readonly [because: string, kind: string];
type Ask = (node: Candidate, demand: Demand, policy: PlacementPolicy, claimed: boolean) => Found | undefined;

const ASKED: Readonly<Record<Question, Ask>> = {
  home({ id }, { home }) {
    return home === undefined || home.nodeId === id ? undefined : [`does not have ${home.has}`, `without ${home.has}`];
  },
  labels({ labels }, demand) {
    const missing = missingLabel(labels, demand.labels);
    return missing === undefined ? undefined : [`does not have the label ${missing}`, `without the label ${missing}`];
  },
  region({ labels }, { region }, _policy, claimed) {
    if (region === undefined) return undefined;
    const own = regionOf(labels);
    if (own === region.toLowerCase() || (own === "" && !claimed)) return undefined;
    return own === ""
      ? [`has no region, and other nodes are in ${region}`, "without a region"]
      : [`is in region ${own}`, "in other regions"];
  },
  ability({ noMemory, noNetwork }, { memory, network }) {
    if (memory === true && noMemory !== undefined)
      return [`cannot restore memory (${noMemory})`, "unable to restore memory"];
    return network === true && noNetwork !== undefined
      ? [`gives sandboxes no network (${noNetwork})`, "without a network for sandboxes"]
      : undefined;
  },
  size(node, { cpuCount, least }, { cpuOvercommit }) {
    const small = "too small";
    if (cpuCount > node.cpuCount * cpuOvercommit) return [`has ${node.cpuCount} cores`, small];
    if (least === undefined) return undefined;
    if (least.cpuCount > node.cpuCount) return [`has ${node.cpuCount} cores`, small];
    return least.memoryBytes > node.memoryTotalBytes
      ? [`has ${mib(node.memoryTotalBytes)} MiB of memory`, small]
      : undefined;
  },
  readiness({ id, status, refuses, unreached }, { exclude }) {
    if (refuses === true) return ["does not serve this orchestrator's database", "of another database"];
    if (unreached === true) return ["is not reached by the orchestrator", "not reached"];
    if (status !== "ready") return [`is ${status}`, status];
    const excluded = exclude.get(id);
    return excluded === undefined ? undefined : [excluded, `set aside (${excluded.split(/[:(]/)[0]?.trim() ?? ""})`];
  },
  room(node, demand, policy) {
    const { sandboxCount, maxSandboxes } = node;
    if (sandboxCount >= maxSandboxes)
      return [`is at its limit of ${maxSandboxes} sandboxes`, "at their limit of sandboxes"];
    const cores = node.cpuCount * policy.cpuOvercommit;
    if (node.allocatedCpu + demand.cpuCount > cores)
      return [`has promised ${node.allocatedCpu} of ${cores} cores`, "without cores left"];
    const memory = node.memoryTotalBytes * policy.memoryOvercommit;
    if (node.allocatedMemoryBytes + demand.memoryBytes > memory)
      return [`has promised ${mib(node.allocatedMemoryBytes)} of ${mib(memory)} MiB of memory`, "without memory left"];
    const disk = lackOfDisk(node, demand, policy);
    return disk === undefined ? undefined : [disk, "without disk left"];
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
