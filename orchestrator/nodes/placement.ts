/** Chooses a node for a sandbox, or says why there is none. Pure. */

import type { SandboxDisk } from "../../shared/agent-api/routes.ts";
import type { NodeStatus } from "../../shared/api/nodes.ts";
import type { OrchestratorConfig } from "../config.ts";

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
  /** Why the node can neither store nor restore memory; undefined: it can. */
  readonly noMemory?: string | undefined;
  /** Why the node takes no sandbox that needs the network; undefined: it does. */
  readonly noNetwork?: string | undefined;
  /** The disk that its sandboxes are on, placements under way included; undefined: the node has not reported it. */
  readonly disk: SandboxDisk | undefined;
  /** It does not serve this orchestrator's database. */
  readonly refuses?: boolean;
  /** It reports, and this orchestrator does not reach it. */
  readonly unreached?: boolean;
}

export interface Demand {
  readonly cpuCount: number;
  readonly memoryBytes: number;
  /** Size of the disk; 0: no limit, and nothing is promised. */
  readonly diskBytes: number;
  /** What one node must have of its own, however much it may promise. Absent: no more than it promises. */
  readonly least?: { readonly cpuCount: number; readonly memoryBytes: number };
  /** The start restores memory. */
  readonly memory?: boolean;
  /** The sandbox's policy allows some destination. */
  readonly network?: boolean;
  /** Images and snapshots that the node must have, all of them. */
  readonly labels: Readonly<Record<string, string>>;
  /** The only region whose nodes may take it; nodes without a region take those of every region. */
  readonly region?: string | undefined;
  readonly exclude: ReadonlySet<string>;
}

export interface PlacementPolicy {
  /** Promised cores per real core. */
  readonly cpuOvercommit: number;
  readonly memoryOvercommit: number;
  /** Promised bytes per byte that sandboxes use or may still use. */
  readonly diskOvercommit: number;
}

export function placementPolicy(config: OrchestratorConfig): PlacementPolicy {
  return {
    cpuOvercommit: config.nodeCpuOvercommit,
    memoryOvercommit: config.nodeMemoryOvercommit,
    diskOvercommit: config.nodeDiskOvercommit,
  };
}

export type Choice =
  | { readonly is: "node"; readonly id: string }
  /** Fitting nodes exist, and none has room. `of`: what all of them lack. */
  | { readonly is: "full"; readonly of: "disk" | "other"; readonly reason: string }
  /** No node is ready now, but one is expected to report again. */
  | { readonly is: "connecting" }
  | { readonly is: "none"; readonly reason: string };

/** Number of random nodes compared: with more, all orchestrators would choose the same node. */
const SAMPLE = 3;
const MIB = 1024 ** 2;
/** Weight of the measured load beside the promised load. */
const BUSY_WEIGHT = 0.5;

/** Chooses the best of a few random nodes, which spreads load without agreement between replicas. `random` in [0, 1). */
export function choose(
  candidates: readonly Candidate[],
  demand: Demand,
  policy: PlacementPolicy,
  random: () => number,
): Choice {
  const labelled = candidates.filter((node) => hasLabels(node, demand.labels));
  const fitting = labelled.filter((node) => isIn(node, demand.region));
  if (fitting.length === 0) {
    if (candidates.length === 0) return { is: "none", reason: "no node has registered" };
    if (labelled.length === 0) return { is: "none", reason: "no node has the labels asked for" };
    return { is: "none", reason: `no node that could run it is in region ${demand.region ?? ""}` };
  }
  const able = fitting.filter((node) => isAble(node, demand));
  if (able.length === 0) return { is: "none", reason: whyUnable(fitting, demand) };
  const possible = able.filter((node) => isLargeEnough(node, demand, policy));
  const ready = possible.filter((node) => node.status === "ready" && !demand.exclude.has(node.id));
  if (ready.length === 0) {
    if (possible.length === 0) return { is: "none", reason: whyTooSmall(able, demand) };
    if (possible.some(({ status, unreached }) => status === "connecting" && unreached !== true)) {
      return { is: "connecting" };
    }
    const unreached = possible.filter((node) => node.unreached === true).map(({ id }) => `'${id}'`);
    if (unreached.length > 0) {
      return {
        is: "none",
        reason: `the orchestrator does not reach node ${unreached.join(", ")}: GET /nodes says why`,
      };
    }
    if (possible.every(({ refuses }) => refuses === true)) {
      return { is: "none", reason: "no node serves this orchestrator's database: its operator reads why at /readyz" };
    }
    const states = [...new Set(possible.map(({ status }) => status))].sort().join(", ");
    return { is: "none", reason: `no node is ready (${states})` };
  }
  const roomy = ready.filter((node) => hasRoom(node, demand, policy));
  if (roomy.length === 0) return whyFull(ready, demand, policy);
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

function isIn({ labels }: Candidate, region: string | undefined): boolean {
  const own = labels["region"] ?? "";
  return region === undefined || own === "" || own.toLowerCase() === region.toLowerCase();
}

function isAble({ noMemory, noNetwork }: Candidate, { memory, network }: Demand): boolean {
  return (memory !== true || noMemory === undefined) && (network !== true || noNetwork === undefined);
}

/** Names the reason of the first node for each thing that a node lacks, and what the caller can do without. */
function whyUnable(nodes: readonly Candidate[], { memory, network }: Demand): string {
  const first = (of: "noMemory" | "noNetwork") => nodes.find((node) => node[of] !== undefined);
  const withoutMemory = memory === true ? first("noMemory") : undefined;
  const cut = network === true ? first("noNetwork") : undefined;
  const reasons = [
    ...(withoutMemory === undefined
      ? []
      : [
          `no node that has the stored memory can restore it (node ${withoutMemory.id}: ${withoutMemory.noMemory ?? ""}): ` +
            "start from the disk alone with memory: false, or ask the operator to mend CRIU there",
        ]),
    ...(cut === undefined
      ? []
      : [
          `no node gives sandboxes a network now (node ${cut.id}: ${cut.noNetwork ?? ""}): ` +
            "start it with allow_internet_access: false, or ask the operator",
        ]),
  ];
  return reasons.join("; ");
}

function isLargeEnough(node: Candidate, { cpuCount, least }: Demand, { cpuOvercommit }: PlacementPolicy): boolean {
  return (
    cpuCount <= node.cpuCount * cpuOvercommit &&
    (least === undefined || (least.cpuCount <= node.cpuCount && least.memoryBytes <= node.memoryTotalBytes))
  );
}

function whyTooSmall(nodes: readonly Candidate[], { cpuCount, memoryBytes, least }: Demand): string {
  if (least === undefined) return `no node is large enough for ${cpuCount} cores`;
  const cores = Math.max(...nodes.map((node) => node.cpuCount));
  const memory = Math.floor(Math.max(...nodes.map((node) => node.memoryTotalBytes)) / MIB);
  const asked = `${cpuCount} cores and ${Math.ceil(memoryBytes / MIB)} MiB of memory`;
  return `no node is large enough for ${asked}: nodes have up to ${cores} cores and up to ${memory} MiB, ask for less`;
}

function hasRoom(node: Candidate, demand: Demand, policy: PlacementPolicy): boolean {
  return (
    node.sandboxCount < node.maxSandboxes &&
    node.allocatedCpu + demand.cpuCount <= node.cpuCount * policy.cpuOvercommit &&
    node.allocatedMemoryBytes + demand.memoryBytes <= node.memoryTotalBytes * policy.memoryOvercommit &&
    hasDisk(node, demand, policy)
  );
}

/** A node shares what is free above its reserve, and what its sandboxes use already, among all that it has promised. */
function hasDisk({ disk }: Candidate, { diskBytes }: Demand, { diskOvercommit }: PlacementPolicy): boolean {
  if (disk === undefined) return true;
  if (disk.short) return false;
  const shared = disk.usedBytes + Math.max(0, disk.freeBytes - disk.reserveBytes);
  return diskBytes === 0 || disk.promisedBytes + diskBytes <= shared * diskOvercommit;
}

const WAY_OUT = "delete sandboxes or snapshots, or ask the operator to make room";

function whyFull(nodes: readonly Candidate[], demand: Demand, policy: PlacementPolicy): Choice {
  if (nodes.every((node) => node.sandboxCount >= node.maxSandboxes)) {
    const limits = [...new Set(nodes.map((node) => node.maxSandboxes))].join(" or ");
    return { is: "full", of: "other", reason: `every node is at its limit of ${limits} sandboxes` };
  }
  if (nodes.every(({ disk }) => disk?.short === true)) {
    const reason = `the disk of every node has less room than its reserve (SVC_DISK_RESERVE_MB): ${WAY_OUT}`;
    return { is: "full", of: "disk", reason };
  }
  const without = nodes.filter((node) => !hasDisk(node, demand, policy));
  if (without.length === nodes.length) {
    const reason = `no node can promise ${Math.ceil(demand.diskBytes / MIB)} MiB more of its disk (SVC_NODE_DISK_OVERCOMMIT): ${WAY_OUT}`;
    return { is: "full", of: "disk", reason };
  }
  const what = without.length > 0 ? "CPU, memory and disk" : "CPU and memory";
  return { is: "full", of: "other", reason: `no node has the ${what} left` };
}

function sample<T>(items: readonly T[], count: number, random: () => number): T[] {
  const rest = [...items];
  const taken: T[] = [];
  while (taken.length < count && rest.length > 0) {
    taken.push(...rest.splice(Math.floor(random() * rest.length), 1));
  }
  return taken;
}
