/** A node's heartbeat to the orchestrator, and the reply. */

import { type Static, Type } from "typebox";
import { Finding } from "../program/finding.ts";
import { ExitReport, LiveExecution } from "./sandbox-shapes.ts";
import { address, BuildReference, closed, Resources, reported, strings, time } from "./shapes.ts";
import { HeldImage, StoredSnapshot } from "./snapshot-shapes.ts";
import { OfferedStore, StoreMark } from "./store-shapes.ts";

/** An agent's addresses, its capabilities and its size. */
export const NodeFacts = Type.Object(
  {
    nodeId: Type.String({ minLength: 1, maxLength: 64 }),
    /** New at every start of the agent. */
    serviceInstanceId: reported,
    version: Type.String(),
    commit: Type.String(),
    /** Agent API and node proxy, as the orchestrator reaches them. */
    apiUrl: address,
    proxyUrl: address,
    /** Kernel and network of the node (`machine-id.ts`): an edge that has the same may dial the addresses of sandboxes itself. */
    machineId: reported,
    labels: strings,
    machine: Type.Object(
      {
        cpuFamily: Type.String(),
        cpuModel: Type.String(),
        cpuModelName: Type.String(),
        cpuArchitecture: Type.String(),
      },
      closed,
    ),
    capabilities: Type.Object(
      {
        memorySnapshots: Type.Boolean(),
        /** Restores large memory page by page. Absent: an older agent. */
        lazyPages: Type.Optional(Type.Boolean()),
        diskLimit: Type.Boolean(),
        /** Keeps volumes for its own sandboxes; no node mounts those of another one. Absent: an older agent. */
        volumes: Type.Optional(Type.Boolean()),
        /** Uses the platform's blob store. Absent: it has none. */
        blobStore: Type.Optional(Type.Boolean()),
        /** Offers what it has to other nodes, and fetches what they offer. Absent: an older agent. */
        peers: Type.Optional(Type.Boolean()),
        /** Keeps the orchestrator's records of its sandboxes. Absent: an older agent. */
        records: Type.Optional(Type.Boolean()),
        /** Takes the number of a fork's copies. Absent: an older agent. */
        copiesAhead: Type.Optional(Type.Boolean()),
        detail: Type.Record(Type.String(), Type.String()),
      },
      closed,
    ),
    maxSandboxes: Type.Integer({ minimum: 1 }),
    /** Cold starts and restores that it works on at a time. Absent: an older agent. */
    startsAtOnce: Type.Optional(Type.Integer({ minimum: 1 })),
  },
  closed,
);
export type NodeFacts = Static<typeof NodeFacts>;

/** The disk that sandboxes are on, in bytes. */
const SandboxDisk = Type.Object(
  {
    /** Sum of the disk sizes of running and paused sandboxes and of builds. */
    promisedBytes: Type.Integer({ minimum: 0 }),
    /** Bytes that these use, as last measured. */
    usedBytes: Type.Integer({ minimum: 0 }),
    freeBytes: Type.Integer({ minimum: 0 }),
    reserveBytes: Type.Integer({ minimum: 0 }),
    /** Less than the reserve of bytes or of inodes is free: the node refuses new sandboxes, builds and snapshots. */
    short: Type.Boolean(),
  },
  closed,
);
export type SandboxDisk = Static<typeof SandboxDisk>;

export const NodeLoad = Type.Object(
  {
    cpuCount: Type.Integer(),
    cpuPercent: Type.Number(),
    memoryTotalBytes: Type.Integer(),
    memoryUsedBytes: Type.Integer(),
    allocatedCpu: Type.Integer(),
    allocatedMemoryBytes: Type.Integer(),
    sandboxCount: Type.Integer(),
    sandboxStartingCount: Type.Integer(),
    disks: Type.Array(
      Type.Object(
        {
          mountPoint: Type.String(),
          device: Type.String(),
          filesystemType: Type.String(),
          usedBytes: Type.Integer(),
          totalBytes: Type.Integer(),
        },
        closed,
      ),
    ),
    /** Bytes of snapshots and paused sandboxes, and the node's quota for them, 0 for none. Absent: an older agent. */
    stored: Type.Optional(Type.Object({ storedBytes: Type.Integer(), quotaBytes: Type.Integer() }, closed)),
    /** Absent: an older agent, or one that has not measured the disk yet. */
    sandboxDisk: Type.Optional(SandboxDisk),
    /** What this node cannot do, and what stands in the way of its sandboxes. Absent: an older agent. */
    findings: Type.Optional(Type.Array(Finding)),
    /** No packet of a sandbox leaves the host, and the node takes no new sandbox that needs the network. Absent: it does. */
    networkRefused: Type.Optional(Type.Boolean()),
    pools: Type.Array(Type.Object({ buildId: Type.String(), ready: Type.Integer(), wanted: Type.Integer() }, closed)),
    /** The images of templates that it has, by the last look at its Docker. Absent: an older agent. */
    images: Type.Optional(Type.Array(HeldImage)),
    /** The node's clock. Absent: an older agent. */
    at: Type.Optional(time),
  },
  closed,
);
export type NodeLoad = Static<typeof NodeLoad>;

/** A template build whose sandboxes start from a pool. */
export const PoolTarget = Type.Object(
  {
    build: BuildReference,
    resources: Resources,
    /** Containers kept ready; the node keeps fewer where its memory allows no more. */
    size: Type.Integer({ minimum: 0, maximum: 1024 }),
  },
  closed,
);
export type PoolTarget = Static<typeof PoolTarget>;

export const Heartbeat = Type.Object(
  {
    node: NodeFacts,
    load: NodeLoad,
    executions: Type.Array(LiveExecution),
    /** Exits that no reply has acknowledged yet. */
    exits: Type.Array(ExitReport),
    /** Includes pauses that the agent took by itself while the orchestrator was away. */
    snapshots: Type.Array(StoredSnapshot),
    /** The store that the node serves; absent: none yet, or an older agent. */
    store: Type.Optional(StoreMark),
  },
  closed,
);
export type Heartbeat = Static<typeof Heartbeat>;

export const HeartbeatReply = Type.Object(
  {
    pools: Type.Array(PoolTarget),
    /** Executions this node reported that have ended by their records. */
    stop: Type.Array(Type.String()),
    /** Executions without a record, after the grace period: the node pauses them and holds them. Absent: an older orchestrator. */
    hold: Type.Optional(Type.Array(Type.String())),
    /** `endAt` as the orchestrator knows it, for executions where the report differed. */
    endAt: Type.Record(Type.String(), time),
    /** Reported snapshots that no record references any more, after the grace period: the node holds them, then deletes them. */
    deleteSnapshots: Type.Array(Type.String()),
    /** Reported references that came too late to be recorded: the node uploads these snapshots and images (by their builds) again. Absent: none. */
    uploadAgain: Type.Optional(Type.Array(Type.String())),
    /** Each node of the platform reads blobs that are packed by zstd. Absent: not each, or an older orchestrator. */
    zstdBlobs: Type.Optional(Type.Boolean()),
    /** The projects of builds that the node does not know the owner of, by build. Absent: none. */
    owners: Type.Optional(strings),
    /** Which of the node's addresses the orchestrator does not reach, so that it gives the node no sandbox. Absent: it reaches both. */
    unreached: Type.Optional(Type.Array(Finding)),
    /**
     * For how long from this report on the node's sandboxes may run without another answer: others may have counted the node as
     * lost after that. Absent: nobody can, or an older orchestrator.
     */
    lease: Type.Optional(
      Type.Object(
        {
          forMs: Type.Integer({ minimum: 1 }),
          /** Reported executions without a record, in their grace period. */
          withoutRecord: Type.Array(Type.String()),
        },
        closed,
      ),
    ),
    /** The store that answers. A node applies the rest only if it serves it. Absent: an older orchestrator. */
    store: Type.Optional(OfferedStore),
  },
  closed,
);
export type HeartbeatReply = Static<typeof HeartbeatReply>;
