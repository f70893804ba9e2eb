/**
 * Orchestrator ↔ agent, both directions. Internal: objects are closed, because an old agent must refuse a new rule
 * rather than ignore it. Every answer about a sandbox carries its execution id (design.md §2).
 */

import { type Static, Type } from "typebox";
import { contract } from "./contract.ts";
import { LogEntry } from "./sandbox-log.ts";

const closed = { additionalProperties: false } as const;
const strings = Type.Record(Type.String(), Type.String());

/** Unix milliseconds, everywhere on this contract. */
const time = Type.Integer({ minimum: 0 });

const byExecution = Type.Object({ executionId: Type.String({ format: "uuid" }) }, closed);

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

/**
 * Egress of one sandbox. Only whether the internet is open, for now: rules, domains and proxies are refused by the
 * orchestrator until the agent enforces them.
 */
const Egress = Type.Object({ internet: Type.Boolean() }, closed);

/** An id made by the orchestrator for one capture of a sandbox; a repeated request with the same id is the same capture. */
const SnapshotId = Type.String({ format: "uuid" });

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
    egress: Egress,
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
    /** `exited`: the container's first process ended; `oom`: killed for memory; `expired`: ended by the agent itself. */
    reason: Type.Enum(["exited", "oom", "removed", "expired", "lost"]),
    exitCode: Type.Optional(Type.Integer()),
    at: time,
  },
  closed,
);
export type ExitReport = Static<typeof ExitReport>;

/** Called by the orchestrator. Bearer = node token. */
export const agentApi = contract({
  startExecution: {
    method: "PUT",
    path: "/v1/executions/{executionId}",
    summary: "Start a sandbox here, from the warm pool if one fits; repeating it is harmless",
    tag: "Executions",
    access: "node",
    params: byExecution,
    body: StartBody,
    status: 200,
    reply: Started,
  },
  stopExecution: {
    method: "DELETE",
    path: "/v1/executions/{executionId}",
    summary: "Kill a sandbox; unroutable and its streams ended before this answers; unknown is success",
    tag: "Executions",
    access: "node",
    params: byExecution,
    status: 204,
  },
  updateExecution: {
    method: "PATCH",
    path: "/v1/executions/{executionId}",
    summary: "Change the end of a running sandbox",
    tag: "Executions",
    access: "node",
    params: byExecution,
    body: Type.Object({ endAt: time }, closed),
    status: 204,
  },
  pauseExecution: {
    method: "POST",
    path: "/v1/executions/{executionId}/pause",
    summary: "End an execution into a durable snapshot; unroutable before this answers; a failure leaves it running",
    tag: "Executions",
    access: "node",
    params: byExecution,
    body: CaptureBody,
    status: 200,
    reply: Captured,
  },
  checkpointExecution: {
    method: "POST",
    path: "/v1/executions/{executionId}/checkpoint",
    summary: "A durable snapshot of a running execution, which goes on",
    tag: "Executions",
    access: "node",
    params: byExecution,
    body: CaptureBody,
    status: 200,
    reply: Captured,
  },
  deleteSnapshot: {
    method: "DELETE",
    path: "/v1/snapshots/{snapshotId}",
    summary: "Remove a snapshot: memory, image, and the container of a paused sandbox; unknown is success",
    tag: "Executions",
    access: "node",
    params: Type.Object({ snapshotId: SnapshotId }, closed),
    status: 204,
  },
  executionMetrics: {
    method: "GET",
    path: "/v1/executions/{executionId}/metrics",
    summary: "Samples between two times, oldest first",
    tag: "Observation",
    access: "node",
    params: byExecution,
    query: Type.Object({ start: Type.Optional(time), end: Type.Optional(time) }, closed),
    status: 200,
    reply: Type.Array(MetricSample),
  },
  latestMetrics: {
    method: "POST",
    path: "/v1/metrics",
    summary: "The newest sample of each execution that has one",
    tag: "Observation",
    access: "node",
    body: Type.Object({ executionIds: Type.Array(Type.String(), { maxItems: 1000 }) }, closed),
    status: 200,
    reply: Type.Record(Type.String(), MetricSample),
  },
  executionLogs: {
    method: "GET",
    path: "/v1/executions/{executionId}/logs",
    summary: "Log entries from a cursor",
    tag: "Observation",
    access: "node",
    params: byExecution,
    query: Type.Object(
      {
        /** Inclusive; absent = from the oldest (forward) or the newest (backward). */
        cursor: Type.Optional(time),
        limit: Type.Integer({ minimum: 0, maximum: 1000 }),
        direction: Type.Enum(["forward", "backward"]),
        level: Type.Optional(Type.Enum(["debug", "info", "warn", "error"])),
        search: Type.Optional(Type.String({ maxLength: 256 })),
      },
      closed,
    ),
    status: 200,
    reply: Type.Array(LogEntry),
  },
});

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

/** Called by agents on the orchestrator's API port. Bearer = node token. */
export const nodeApi = contract({
  heartbeat: {
    method: "POST",
    path: "/internal/nodes/heartbeat",
    summary: "Register and report: what runs here and what room is left",
    tag: "Nodes",
    access: "node",
    body: Heartbeat,
    status: 200,
    reply: HeartbeatReply,
  },
  reportExits: {
    method: "POST",
    path: "/internal/nodes/{nodeId}/exits",
    summary: "Sandboxes that ended by themselves, at once; repeating it is harmless",
    tag: "Nodes",
    access: "node",
    params: Type.Object({ nodeId: Type.String() }, closed),
    body: Type.Object({ exits: Type.Array(ExitReport) }, closed),
    status: 204,
  },
});
