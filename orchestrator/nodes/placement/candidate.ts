/** What a placement compares: the nodes, what a sandbox needs of one, and what nodes may promise. */

import type { SandboxDisk } from "../../../shared/agent-api/routes.ts";
import type { NodeStatus } from "../../../shared/api/nodes/nodes.ts";
import type { OrchestratorConfig } from "../../config.ts";

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
  /** Started containers that wait for a sandbox, by build. */
  readonly pools?: readonly { readonly buildId: string; readonly ready: number }[];
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
  /** Labels that the node must have, all of them. */
  readonly labels: Readonly<Record<string, string>>;
  /** The region whose nodes may take it. Where no node has that region, nodes without a region take it. */
  readonly region?: string | undefined;
  /** Nodes that are passed over, each with the clause that says why: "failed to start it". */
  readonly exclude: ReadonlyMap<string, string>;
  /** The only node that has what it starts from, and what that is. */
  readonly home?: { readonly nodeId: string; readonly has: string } | undefined;
  /** The build that it starts from, the node that made its image, and those that have fetched it. */
  readonly build?:
    | { readonly id: string; readonly nodeId: string | undefined; readonly holders?: ReadonlySet<string> }
    | undefined;
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

/** Bytes that sandboxes of the node use already, and those that are free above its reserve: what it promises from. */
export function sharedDisk({ usedBytes, freeBytes, reserveBytes }: SandboxDisk): number {
  return usedBytes + Math.max(0, freeBytes - reserveBytes);
}
