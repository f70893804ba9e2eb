/** Chooses a node for a sandbox, or says why there is none. Pure. */

import type { NodeStatus } from "../../shared/api/admin.ts";

export interface Candidate {
  readonly id: string;
  readonly status: NodeStatus;
  readonly labels: Readonly<Record<string, string>>;
  readonly cpuCount: number;
  /** CPU use of the whole machine, 0–100. */
  readonly cpuPercent: number;
  readonly memoryTotalBytes: number;
  /** Resources promised to sandboxes, placements under way included. */
  readonly allocatedCpu: number;
  readonly allocatedMemoryBytes: number;
  readonly sandboxCount: number;
  readonly maxSandboxes: number;
}

export interface Demand {
  readonly cpuCount: number;
  readonly memoryBytes: number;
  /** Images and snapshots that the node must have, all of them. */
  readonly labels: Readonly<Record<string, string>>;
  readonly exclude: ReadonlySet<string>;
}

export interface PlacementPolicy {
  /** Promised cores per real core. */
  readonly cpuOvercommit: number;
  readonly memoryOvercommit: number;
}

export type Choice =
  | { readonly is: "node"; readonly id: string }
  /** Fitting nodes exist, and none has room. */
  | { readonly is: "full"; readonly reason: string }
  /** No node is ready now, but one is expected to report again. */
  | { readonly is: "connecting" }
  | { readonly is: "none"; readonly reason: string };

/** Number of random nodes compared: with more, all orchestrators would choose the same node. */
const SAMPLE = 3;
/** Weight of the measured load beside the promised load. */
const BUSY_WEIGHT = 0.5;

/** Chooses the best of a few random nodes, which spreads load without agreement between replicas. `random` in [0, 1). */
export function choose(
  candidates: readonly Candidate[],
  demand: Demand,
  policy: PlacementPolicy,
  random: () => number,
): Choice {
  const fitting = candidates.filter((node) => hasLabels(node, demand.labels));
  if (fitting.length === 0) {
    return {
      is: "none",
      reason: candidates.length === 0 ? "no node has registered" : "no node has the labels asked for",
    };
  }
  const possible = fitting.filter((node) => demand.cpuCount <= node.cpuCount * policy.cpuOvercommit);
  const ready = possible.filter((node) => node.status === "ready" && !demand.exclude.has(node.id));
  if (ready.length === 0) {
    if (possible.length === 0) return { is: "none", reason: `no node is large enough for ${demand.cpuCount} cores` };
    if (possible.some((node) => node.status === "connecting")) return { is: "connecting" };
    const states = [...new Set(possible.map(({ status }) => status))].sort().join(", ");
    return { is: "none", reason: `no node is ready (${states})` };
  }
  const roomy = ready.filter((node) => hasRoom(node, demand, policy));
  if (roomy.length === 0) return { is: "full", reason: whyFull(ready) };
  const best = sample(roomy, SAMPLE, random)
    .map((node) => ({ id: node.id, score: score(node, demand, policy) }))
    .reduce((best, other) => (other.score < best.score ? other : best));
  return { is: "node", id: best.id };
}

/** Lower is better: the share of the node's promise after this placement, plus half of its measured load. */
export function score(node: Candidate, demand: Demand, policy: PlacementPolicy): number {
  if (node.cpuCount === 0) return Number.MAX_VALUE;
  const busyCores = (node.cpuPercent / 100) * node.cpuCount;
  return (demand.cpuCount + node.allocatedCpu + BUSY_WEIGHT * busyCores) / (policy.cpuOvercommit * node.cpuCount);
}

function hasLabels(node: Candidate, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(labels).every(([name, value]) => node.labels[name] === value);
}

function hasRoom(node: Candidate, demand: Demand, policy: PlacementPolicy): boolean {
  return (
    node.sandboxCount < node.maxSandboxes &&
    node.allocatedCpu + demand.cpuCount <= node.cpuCount * policy.cpuOvercommit &&
    node.allocatedMemoryBytes + demand.memoryBytes <= node.memoryTotalBytes * policy.memoryOvercommit
  );
}

function whyFull(nodes: readonly Candidate[]): string {
  const counted = nodes.every((node) => node.sandboxCount >= node.maxSandboxes);
  if (!counted) return "no node has the CPU and memory left";
  const limits = [...new Set(nodes.map((node) => node.maxSandboxes))].join(" or ");
  return `every node is at its limit of ${limits} sandboxes`;
}

function sample<T>(items: readonly T[], count: number, random: () => number): T[] {
  const rest = [...items];
  const taken: T[] = [];
  while (taken.length < count && rest.length > 0) {
    taken.push(...rest.splice(Math.floor(random() * rest.length), 1));
  }
  return taken;
}
