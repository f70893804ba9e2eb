/** Holds what this orchestrator knows of one node: its last report, the status that an operator wants, and the counts of placements. */

import type { agentApi, NodeFacts, NodeLoad } from "../../shared/agent-api/routes.ts";
import type { NodeStatus } from "../../shared/api/nodes/nodes.ts";
import type { Connection } from "../../shared/http/client.ts";
import type { Finding } from "../../shared/program/finding.ts";
import type { NodeRecord } from "../store/nodes/record.ts";
import type { Candidate } from "./placement/candidate.ts";
import { type Sum, withPromised } from "./promised.ts";

export interface Entry {
  facts: NodeFacts;
  load: NodeLoad;
  /** Of the load: the builds whose images it has. */
  images: ReadonlySet<string>;
  wanted: NodeRecord["wanted"];
  status: NodeStatus;
  statusChangedAt: number;
  lastHeardAt: number;
  createSuccesses: number;
  createFails: number;
  placing: Sum;
  connection: Connection<typeof agentApi>;
  /** The key of the token that the connection shows. */
  keyId: string | undefined;
  /** Why the node refuses this store. */
  refusal: string | undefined;
  unreached: readonly Finding[];
  /** The report in the node's row that this process has written or read; undefined: the node has no row yet. */
  row: { readonly heartbeatAt: number; readonly writtenAt: number; readonly says: string } | undefined;
}

export interface NodeView {
  readonly id: string;
  readonly facts: NodeFacts;
  readonly load: NodeLoad;
  readonly status: NodeStatus;
  readonly statusChangedAt: number;
  readonly lastHeardAt: number;
  readonly createSuccesses: number;
  readonly createFails: number;
  readonly starting: number;
  /** Why the node refuses this store; undefined: it serves it. */
  readonly refusal: string | undefined;
  /** Which of its addresses this orchestrator does not reach. */
  readonly unreached: readonly Finding[];
  /** The builds whose images it has, by its last report. */
  readonly images: ReadonlySet<string>;
}

export function toView(entry: Entry): NodeView {
  const {
    facts,
    load,
    images,
    status,
    statusChangedAt,
    lastHeardAt,
    createSuccesses,
    createFails,
    refusal,
    unreached,
  } = entry;
  return {
    id: facts.nodeId,
    facts,
    load,
    images,
    status,
    statusChangedAt,
    lastHeardAt,
    createSuccesses,
    createFails,
    refusal,
    unreached,
    starting: Math.max(entry.placing.count, load.sandboxStartingCount),
  };
}

/** The builds whose images a node has. */
export function imagesOf({ images = [] }: NodeLoad): ReadonlySet<string> {
  return new Set(images.map(({ buildId }) => buildId));
}

/** Why packets of sandboxes do not leave the node; empty: they do. */
export function networkProblems({ findings = [] }: NodeLoad): string {
  return findings
    .filter(({ id }) => id.startsWith("network."))
    .map(({ problem, evidence }) => `${problem}: ${evidence}`)
    .join("; ");
}

export function toCandidate({ facts, load, status, placing, refusal, unreached }: Entry): Candidate {
  return {
    id: facts.nodeId,
    status,
    labels: facts.labels,
    cpuCount: load.cpuCount,
    cpuPercent: load.cpuPercent,
    memoryTotalBytes: load.memoryTotalBytes,
    allocatedCpu: load.allocatedCpu + placing.cpu,
    allocatedMemoryBytes: load.allocatedMemoryBytes + placing.memoryBytes,
    sandboxCount: load.sandboxCount + placing.count,
    maxSandboxes: facts.maxSandboxes,
    noMemory: facts.capabilities.memorySnapshots
      ? undefined
      : (facts.capabilities.detail["memorySnapshots"] ?? "it does not say why"),
    noNetwork: load.networkRefused === true ? networkProblems(load) : undefined,
    disk: withPromised(load.sandboxDisk, placing.diskBytes),
    pools: load.pools,
    ...(refusal === undefined ? {} : { refuses: true }),
    ...(unreached.length === 0 ? {} : { unreached: true }),
  };
}

/** Returns the part of a report that other orchestrators need at once, and that is the same in most reports. */
export function lasting({ facts, load, keyId, refusal }: Entry): string {
  const { cpuPercent: _, memoryUsedBytes: _used, sandboxDisk, disks: _disks, images, ...rest } = load;
  const disk = sandboxDisk && { promised: sandboxDisk.promisedBytes, short: sandboxDisk.short };
  // Not how far an upload is.
  const held = images?.map(({ buildId }) => buildId);
  return JSON.stringify([facts, rest, disk, held, keyId, refusal]);
}
