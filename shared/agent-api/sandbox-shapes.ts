/** Bodies about a sandbox: its start request and the answer, its usage samples and its exit. `routes.ts` uses them. */

import { type Static, Type } from "typebox";
import { EgressPolicy } from "../policy/egress-policy.ts";
import { MAX_END_DETAIL } from "../states/end-reason.ts";
import { BuildReference, closed, Resources, reported, SnapshotId, strings, time } from "./shapes.ts";
import { VolumeMount } from "./volume-shapes.ts";

/**
 * The stored state that a start restores, instead of the image of its build.
 * `paused`: this sandbox itself, in its own container; thawed while that is kept frozen, else from the stored
 * memory, or without it: from its writable layer, as after a reboot.
 * `snapshot`: a new container from a stored checkpoint (fork, create from a snapshot); the snapshot stays as it is.
 * `rewind`: as `snapshot`, for a sandbox that is here already, running as `replaces` or paused. The former execution stands still
 * meanwhile; it ends in the moment in which the new one counts as running, and goes on when that fails.
 * `memory: false` neither reads nor changes stored memory. A snapshot without memory is started from disk in any case.
 */
export const Origin = Type.Object(
  {
    is: Type.Enum(["paused", "snapshot", "rewind"]),
    snapshotId: SnapshotId,
    memory: Type.Boolean(),
    /** The execution whose place it takes. */
    replaces: Type.Optional(Type.String({ format: "uuid" })),
  },
  closed,
);
export type Origin = Static<typeof Origin>;

export const StartRequest = Type.Object(
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
    /** Volumes of this node that it sees, from its first process on. Stored memory was stored with the same ones. */
    volumes: Type.Optional(Type.Array(VolumeMount, { maxItems: 64 })),
    /** The project that owns it: its share of concurrent restores is limited, and its snapshots have a quota. */
    projectId: Type.Optional(Type.String({ maxLength: 64 })),
    /** The orchestrator's row of a new sandbox, which the node keeps with it. A resume keeps the one that is there. */
    record: Type.Optional(Type.String({ maxLength: 4_194_304 })),
  },
  closed,
);
export type StartRequest = Static<typeof StartRequest>;

export const Started = Type.Object(
  {
    executionId: Type.String(),
    sandboxId: Type.String(),
    /** Reachable from the node itself only. */
    address: Type.String(),
    envdVersion: Type.String(),
    startedAt: time,
    /** Whether the container was claimed from the warm pool. */
    warm: Type.Boolean(),
    /** Which part of its `origin` was restored; `nothing` without one. */
    restored: Type.Enum(["nothing", "frozen", "memory", "disk"]),
    /** Milliseconds that the parts of the start took. Absent: an older agent, or one that has not started it itself. */
    times: Type.Optional(Type.Record(Type.String(), Type.Number())),
  },
  closed,
);
export type Started = Static<typeof Started>;

/** The answer to a replaced policy, which is in force in either case. */
export const EgressReplaced = Type.Object(
  {
    trust: Type.Union([Type.Literal("applied"), Type.Literal("not applied")], {
      description: "not applied: the sandbox does not answer, so its programs do not trust hosts with rules",
    }),
  },
  closed,
);
export type EgressReplaced = Static<typeof EgressReplaced>;

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
    executionId: reported,
    sandboxId: reported,
    /**
     * `exited`: the container's first process ended; `out_of_memory`: the kernel killed it for memory, which an agent of
     * an earlier version calls `oom`; `expired`: ended by the agent itself at its timeout; `disk_full`: ended by the agent,
     * which had held the sandbox for too long because the node's disk was short.
     */
    reason: Type.Enum(["exited", "out_of_memory", "oom", "removed", "expired", "lost", "disk_full"]),
    /** Of the container's first process; absent when it was not seen. */
    exitCode: Type.Optional(Type.Integer()),
    /** More about the reason in the agent's words, made by `cleanDetail`: it may name what came out of the sandbox. */
    detail: Type.Optional(Type.String({ maxLength: MAX_END_DETAIL })),
    at: time,
  },
  closed,
);
export type ExitReport = Static<typeof ExitReport>;

/** What an execution has used since the agent began to measure it, as counters, and what it uses now. */
export const ExecutionUse = Type.Object(
  {
    /** Milliseconds of processor time. Starts again at 0 with the agent, as the other counters do. */
    cpuMs: Type.Integer({ minimum: 0 }),
    /** Bytes that have left the sandbox. */
    sentBytes: Type.Integer({ minimum: 0 }),
    receivedBytes: Type.Integer({ minimum: 0 }),
    memoryBytes: Type.Integer({ minimum: 0 }),
    diskBytes: Type.Integer({ minimum: 0 }),
  },
  closed,
);
export type ExecutionUse = Static<typeof ExecutionUse>;

export const LiveExecution = Type.Object(
  {
    executionId: reported,
    sandboxId: reported,
    address: reported,
    startedAt: time,
    endAt: time,
    /** The agent has frozen the sandbox, because the node's disk is short and the sandbox grew most. Absent: it runs. */
    held: Type.Optional(Type.Boolean()),
    /** Absent: not measured yet, or an agent of an earlier version. */
    use: Type.Optional(ExecutionUse),
  },
  closed,
);
export type LiveExecution = Static<typeof LiveExecution>;
