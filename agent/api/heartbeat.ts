/** Builds the heartbeat: what the agent reports to the orchestrator about its node. Pure. */

import { BLOB_ENCODINGS, ENCODINGS_DETAIL } from "../../shared/agent-api/blobs/encodings.ts";
import type { ExecutionUse, Heartbeat, NodeFacts, NodeLoad } from "../../shared/agent-api/routes.ts";
import { defined } from "../../shared/defined.ts";
import type { Finding } from "../../shared/program/finding.ts";
import { COMMIT, VERSION } from "../../shared/version.ts";
import { type AgentConfig, readLabels } from "../config.ts";
import { promised } from "../sandboxes/pool/refill-plan.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";

/** Facts that do not change while one agent process runs. */
export interface NodeIdentity {
  readonly serviceInstanceId: string;
  readonly machine: NodeFacts["machine"];
  readonly machineId: string;
  readonly apiUrl: string;
  readonly proxyUrl: string;
}

export interface NodeNow {
  readonly capabilities: NodeFacts["capabilities"];
  readonly machine: Pick<NodeLoad, "cpuCount" | "cpuPercent" | "memoryTotalBytes" | "memoryUsedBytes" | "disks">;
  readonly pools: NodeLoad["pools"];
  readonly running: readonly Sandbox[];
  /** The sandbox is frozen because the node's disk is full. */
  readonly isHeld: (executionId: string) => boolean;
  readonly use: (executionId: string) => ExecutionUse | undefined;
  readonly starting: number;
  /** Unix milliseconds. */
  readonly at: number;
  readonly stored: NonNullable<NodeLoad["stored"]>;
  readonly sandboxDisk: NodeLoad["sandboxDisk"];
  readonly snapshots: Heartbeat["snapshots"];
  readonly images: NonNullable<NodeLoad["images"]>;
  readonly findings: readonly Finding[];
  readonly networkRefused: boolean;
  /** It has a certificate, by which other nodes let it in, and it lets them in. */
  readonly meetsPeers: boolean;
  readonly hasBlobStore: boolean;
  readonly store: Heartbeat["store"];
}

type Configured = Pick<AgentConfig, "nodeId" | "nodeRegion" | "labels" | "maxSandboxes" | "bootConcurrency">;

export function describeNode(config: Configured, identity: NodeIdentity, node: NodeNow): Omit<Heartbeat, "exits"> {
  const { cpu, memoryBytes } = promised(node.running.map(({ container }) => container.resources));
  return {
    node: {
      nodeId: config.nodeId,
      version: VERSION,
      commit: COMMIT,
      labels: { ...readLabels(config.labels), ...(config.nodeRegion === "" ? {} : { region: config.nodeRegion }) },
      maxSandboxes: config.maxSandboxes,
      startsAtOnce: config.bootConcurrency,
      capabilities: {
        ...node.capabilities,
        ...(node.hasBlobStore ? { blobStore: true } : {}),
        ...(node.meetsPeers ? { peers: true } : {}),
        records: true,
        copiesAhead: true,
        // Among the details, which an older orchestrator takes too.
        detail: { ...node.capabilities.detail, [ENCODINGS_DETAIL]: BLOB_ENCODINGS },
      },
      ...identity,
    },
    load: {
      ...node.machine,
      allocatedCpu: cpu,
      allocatedMemoryBytes: memoryBytes,
      sandboxCount: node.running.length,
      sandboxStartingCount: node.starting,
      stored: node.stored,
      ...defined({ sandboxDisk: node.sandboxDisk }),
      pools: node.pools,
      images: node.images,
      at: node.at,
      findings: [...node.findings],
      ...(node.networkRefused ? { networkRefused: true } : {}),
    },
    executions: node.running.map(({ executionId, sandboxId, container, startedAt, endAt }) => ({
      executionId,
      sandboxId,
      address: container.slot.address,
      startedAt,
      endAt,
      ...(node.isHeld(executionId) ? { held: true } : {}),
      ...used(node.use(executionId)),
    })),
    snapshots: [...node.snapshots],
    ...defined({ store: node.store }),
  };
}

function used(use: ExecutionUse | undefined): { readonly use?: ExecutionUse } {
  return use === undefined ? {} : { use };
}
