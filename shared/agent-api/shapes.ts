/**
 * What orchestrator and agent tell each other (`agent-api.ts` says when). Objects are closed, because an old agent must
 * refuse a new rule rather than ignore it.
 */

import { type Static, Type } from "typebox";
import { EgressPolicy } from "../policy/egress-policy.ts";

export const closed = { additionalProperties: false } as const;
const strings = Type.Record(Type.String(), Type.String());

/** Unix milliseconds, everywhere on this contract. */
export const time = Type.Integer({ minimum: 0 });

export const Resources = Type.Object(
  {
    cpuCount: Type.Integer({ minimum: 1 }),
    memoryMB: Type.Integer({ minimum: 128 }),
    diskSizeMB: Type.Integer({ minimum: 0 }),
  },
  closed,
);
export type Resources = Static<typeof Resources>;

/** What a container is made from; also what a warm pool is keyed by, together with the resources. */
export const BuildReference = Type.Object(
  { templateId: Type.String(), buildId: Type.String(), image: Type.String() },
  closed,
);
export type BuildReference = Static<typeof BuildReference>;

/** An id made by the orchestrator for one capture of a sandbox; a repeated request with the same id is the same capture. */
export const SnapshotId = Type.String({ format: "uuid" });

/**
 * What a start brings back, instead of the image of its build.
 * `paused`: this sandbox itself, in its own container; hot (thawed) while that is kept frozen, else from the stored
 * memory, or without it: from its writable layer, as after a reboot.
 * `snapshot`: a new container from a stored checkpoint (fork, create from a snapshot); the snapshot stays as it is.
 * `memory: false` neither reads nor changes stored memory. A snapshot without memory is started from disk in any case.
 */
export const Origin = Type.Object(
  { is: Type.Enum(["paused", "snapshot"]), snapshotId: SnapshotId, memory: Type.Boolean() },
  closed,
);
export type Origin = Static<typeof Origin>;

export const StartBody = Type.Object(
  {
    sandboxId: Type.String({ pattern: "^[a-z0-9]{1,64}$" }),
    build: BuildReference,
    resources: Resources,
    egress: EgressPolicy,
    envs: strings,
    /** envd's own token (`X-Access-Token`). */
    accessToken: Type.String({ minLength: 16 }),
    defaultUser: Type.Optional(Type.String()),
    defaultWorkdir: Type.Optional(Type.String()),
    endAt: time,
    /** What the agent does by itself at `endAt` plus its grace when the orchestrator is away. */
    onTimeout: Type.Enum(["kill", "pause"]),
    /** Whether a pause at `endAt` keeps memory. Absent: it does. */
    onTimeoutMemory: Type.Optional(Type.Boolean()),
    origin: Type.Optional(Origin),
    /** Whose it is: restores of one project leave turns to the others. */
    projectId: Type.Optional(Type.String({ maxLength: 64 })),
  },
  closed,
);
export type StartBody = Static<typeof StartBody>;

export const Started = Type.Object(
  {
    executionId: Type.String(),
    sandboxId: Type.String(),
    /** Reachable from the node itself only. */
    address: Type.String(),
    envdVersion: Type.String(),
    startedAt: time,
    /** Claimed from the warm pool. */
    warm: Type.Boolean(),
    /** Which part of its `origin` is there again; `nothing` without one. */
    restored: Type.Enum(["nothing", "hot", "memory", "disk"]),
  },
  closed,
);
export type Started = Static<typeof Started>;

/** The policy is in force, whatever is said here. */
export const EgressReplaced = Type.Object(
  {
    trust: Type.Union([Type.Literal("as asked"), Type.Literal("not told")], {
      description: "not told: the sandbox does not answer, so its programs do not trust hosts with rules",
    }),
  },
  closed,
);
export type EgressReplaced = Static<typeof EgressReplaced>;

export const CaptureBody = Type.Object(
  {
    snapshotId: SnapshotId,
    /** false: only what is on disk. */
    memory: Type.Boolean(),
  },
  closed,
);
export type CaptureBody = Static<typeof CaptureBody>;

/** A capture that is durable: fsynced, with a manifest, under its final name. */
export const Captured = Type.Object(
  {
    executionId: Type.String(),
    sandboxId: Type.String(),
    snapshotId: SnapshotId,
    /** Memory is in it. False although asked for: the node cannot, and said so in its capabilities. */
    memory: Type.Boolean(),
    /** Of the checkpoint's disk, for starts with origin `snapshot`; absent for a pause, whose disk is its container. */
    image: Type.Optional(Type.String()),
    memoryBytes: Type.Integer({ minimum: 0 }),
    diskBytes: Type.Integer({ minimum: 0 }),
    capturedAt: time,
  },
  closed,
);
export type Captured = Static<typeof Captured>;

export const MetricSample = Type.Object(
  {
    at: time,
    cpuCount: Type.Integer(),
    cpuUsedPct: Type.Number(),
    memUsed: Type.Integer(),
    memTotal: Type.Integer(),
    memCache: Type.Integer(),
    diskUsed: Type.Integer(),
    diskTotal: Type.Integer(),
  },
  closed,
);
export type MetricSample = Static<typeof MetricSample>;

export const ExitReport = Type.Object(
  {
    executionId: Type.String(),
    sandboxId: Type.String(),
    /**
     * `exited`: the container's first process ended; `oom`: killed for memory; `expired`: ended by the agent itself;
     * `disk_full`: ended by the agent, held for too long because the node's disk was short and it grew most on it.
     */
    reason: Type.Enum(["exited", "oom", "removed", "expired", "lost", "disk_full"]),
    exitCode: Type.Optional(Type.Integer()),
    at: time,
  },
  closed,
);
export type ExitReport = Static<typeof ExitReport>;

/** Where the orchestrator finds an agent, what it can do and what room it has. */
export const NodeFacts = Type.Object(
  {
    nodeId: Type.String({ minLength: 1, maxLength: 64 }),
    /** Fresh for every start of the agent. */
    serviceInstanceId: Type.String(),
    version: Type.String(),
    commit: Type.String(),
    /** Agent API and node proxy, as the orchestrator reaches them. */
    apiUrl: Type.String(),
    proxyUrl: Type.String(),
    /** Sandboxes' addresses are reachable from `apiUrl`'s host: the edge may dial them itself when it is that host. */
    machineId: Type.String(),
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
      { memorySnapshots: Type.Boolean(), diskLimit: Type.Boolean(), detail: Type.Record(Type.String(), Type.String()) },
      closed,
    ),
    maxSandboxes: Type.Integer({ minimum: 1 }),
  },
  closed,
);
export type NodeFacts = Static<typeof NodeFacts>;

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
    pools: Type.Array(Type.Object({ buildId: Type.String(), ready: Type.Integer(), wanted: Type.Integer() }, closed)),
  },
  closed,
);
export type NodeLoad = Static<typeof NodeLoad>;

export const LiveExecution = Type.Object(
  {
    executionId: Type.String(),
    sandboxId: Type.String(),
    address: Type.String(),
    startedAt: time,
    endAt: time,
    /** It stands still, because the node's disk is short and it grew most on it. Absent: it does not. */
    held: Type.Optional(Type.Boolean()),
  },
  closed,
);
export type LiveExecution = Static<typeof LiveExecution>;

/** A snapshot on the node's disk. */
export const StoredSnapshot = Type.Object(
  {
    snapshotId: SnapshotId,
    /** `pause`: the sandbox itself, of which this is the only place; `checkpoint`: a copy others start from. */
    kind: Type.Enum(["pause", "checkpoint"]),
    sandboxId: Type.String(),
    /** The execution it was taken of. */
    executionId: Type.String(),
    memory: Type.Boolean(),
    memoryBytes: Type.Integer({ minimum: 0 }),
    diskBytes: Type.Integer({ minimum: 0 }),
    capturedAt: time,
  },
  closed,
);
export type StoredSnapshot = Static<typeof StoredSnapshot>;

/** A template build whose sandboxes start from a pool. */
export const PoolTarget = Type.Object(
  {
    build: BuildReference,
    resources: Resources,
    /** Containers kept ready; the node may keep fewer when memory is short. */
    size: Type.Integer({ minimum: 0, maximum: 64 }),
  },
  closed,
);
export type PoolTarget = Static<typeof PoolTarget>;

export const Heartbeat = Type.Object(
  {
    node: NodeFacts,
    load: NodeLoad,
    executions: Type.Array(LiveExecution),
    /** Exits not yet acknowledged by a reply. */
    exits: Type.Array(ExitReport),
    /** Also those that the agent took by itself at a sandbox's end while the orchestrator was away. */
    snapshots: Type.Array(StoredSnapshot),
  },
  closed,
);
export type Heartbeat = Static<typeof Heartbeat>;

export const HeartbeatReply = Type.Object(
  {
    pools: Type.Array(PoolTarget),
    /** Executions this node reported that the orchestrator wants stopped (orphans after the grace period, killed rows). */
    stop: Type.Array(Type.String()),
    /** `endAt` as the orchestrator knows it, for executions where the report differed. */
    endAt: Type.Record(Type.String(), time),
    /** Reported snapshots that no record wants any more, after the grace period. */
    deleteSnapshots: Type.Array(Type.String()),
  },
  closed,
);
export type HeartbeatReply = Static<typeof HeartbeatReply>;

/** What was decided about the flows of a sandbox to one destination: one entry for those that were alike and close in time. */
export const NetworkLogEntry = Type.Object(
  {
    /** Of the first of them. */
    at: time,
    protocol: Type.Enum(["tcp", "udp", "dns"]),
    /** Empty for a question to the resolver. */
    address: Type.String(),
    port: Type.Integer({ minimum: 0, maximum: 65_535 }),
    /** As it was read from the flow, or asked for. */
    name: Type.Optional(Type.String()),
    verdict: Type.Enum(["allow", "deny"]),
    /** `Decision.rule`; `limit connections` where there were too many at once, `failed` with a reason where it was allowed. */
    rule: Type.String(),
    /** How many flows the entry stands for. */
    count: Type.Integer({ minimum: 1 }),
    /** As far as they are known when the entry is written; 0 where the kernel does not count. */
    sentBytes: Type.Integer({ minimum: 0 }),
    receivedBytes: Type.Integer({ minimum: 0 }),
  },
  closed,
);
export type NetworkLogEntry = Static<typeof NetworkLogEntry>;

/** Newest last. */
export const NetworkLog = Type.Object(
  {
    entries: Type.Array(NetworkLogEntry),
    /** Decisions that were not written down, because there were too many. */
    suppressed: Type.Integer({ minimum: 0 }),
  },
  closed,
);
export type NetworkLog = Static<typeof NetworkLog>;

/** `Decision`, and where a name leads to at this moment. */
export const NetworkCheck = Type.Object(
  {
    verdict: Type.Enum(["allow", "deny"]),
    rule: Type.String(),
    reason: Type.String(),
    dial: Type.Enum(["hostname", "address"]),
    via: Type.Optional(Type.Literal("egressProxy")),
    transform: Type.Optional(Type.String()),
    /** Empty where the name is not resolved. */
    addresses: Type.Array(Type.String()),
  },
  closed,
);
export type NetworkCheck = Static<typeof NetworkCheck>;
