/** Converts sandbox rows to the orchestrator's records and back. Pure. */

import type { Selectable, Updateable } from "kysely";
import type { IdentityTokens } from "../../../shared/api/identity/iam.ts";
import type { NetworkOptions } from "../../../shared/api/network.ts";
import { defined } from "../../../shared/defined.ts";
import type { Seal } from "../../../shared/program/seal.ts";
import type { End } from "../../../shared/states/end-reason.ts";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import { networkContext } from "../sealed/contexts.ts";
import { type SnapshotSize, sizeOf } from "../storage/size.ts";
import type { SandboxRow } from "../tables.ts";
import { fromMounts, toMounts, type VolumeMount } from "../volumes/row.ts";

/** A sandbox as the orchestrator stores it. Times are unix milliseconds. */
export interface SandboxRecord {
  readonly id: string;
  readonly projectId: string;
  readonly state: SandboxState;
  readonly executionId: string;
  readonly nodeId: string;
  readonly address: string | undefined;
  readonly templateId: string;
  readonly buildId: string;
  readonly alias: string | undefined;
  readonly cpuCount: number;
  readonly memoryMB: number;
  readonly diskSizeMB: number;
  readonly envdVersion: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Network options without the egress proxy's password. */
  readonly network: NetworkOptions | undefined;
  readonly sealedProxyPassword: string | undefined;
  readonly networkVersion: number;
  readonly volumeMounts: readonly VolumeMount[];
  /** `allow_internet_access` as the caller gave it. */
  readonly internet: boolean | undefined;
  /** Workload identity tokens that its rules may name. */
  readonly iam: IdentityTokens | undefined;
  readonly onTimeout: "kill" | "pause";
  /** Whether a pause at the timeout keeps memory. */
  readonly onTimeoutMemory: boolean;
  readonly onResume: "restore" | "reboot";
  readonly autoResume: boolean;
  /** The timeout of the create request. */
  readonly timeoutSeconds: number;
  readonly createdAt: number;
  readonly startedAt: number;
  readonly endAt: number;
  readonly endedAt: number | undefined;
  /** How it ended; set with the move to `killing`, or to `gone` without one. */
  readonly end: End | undefined;
  /** The snapshot that a paused sandbox resumes from. Kept while it starts, and after a start without memory. */
  readonly snapshot: Snapshot | undefined;
  /** A pause or checkpoint under way, written before the node is asked. */
  readonly pendingSnapshot: PendingSnapshot | undefined;
  /** The resume under way. */
  readonly resumption: Resumption | undefined;
  /** Names the seed of its tokens; undefined: the oldest one. */
  readonly seedId: string | undefined;
}

/** Place of the snapshot on the sandbox's node. */
export interface Snapshot {
  readonly id: string;
  readonly memory: boolean;
  /** Absent until the node has reported it. */
  readonly size?: SnapshotSize | undefined;
}

interface PendingSnapshot {
  readonly id: string;
  readonly memory: boolean;
  /** Share of the project's quota that it may fill; absent without a quota. */
  readonly reservedBytes?: number | undefined;
}

/** The request of a resume, so that it can be finished after a crash. */
export interface Resumption {
  readonly memory: boolean;
  /** Timeout in seconds, from the moment when the sandbox runs. */
  readonly seconds: number;
}

/** `sealedEnvs`: see shared/program/seal.ts. */
export interface NewSandbox
  extends Omit<
    SandboxRecord,
    "state" | "address" | "endedAt" | "end" | "snapshot" | "pendingSnapshot" | "resumption" | "networkVersion"
  > {
  readonly sealedEnvs: string;
  readonly deadlineAt: number;
}

/** The columns that a change of network options replaces. */
export type NetworkColumns = Pick<SandboxRecord, "network" | "internet" | "sealedProxyPassword">;

export interface MoveSet {
  readonly executionId?: string;
  readonly nodeId?: string;
  readonly address?: string;
  readonly envdVersion?: string;
  readonly startedAt?: number;
  readonly endAt?: number;
  readonly deadlineAt?: number;
  readonly endedAt?: number;
  readonly end?: End;
  readonly onTimeout?: "kill" | "pause";
  readonly snapshot?: Snapshot | null;
  readonly pendingSnapshot?: PendingSnapshot | null;
  readonly resumption?: Resumption | null;
}

/** Sealed for this sandbox alone: rules carry headers, which are as secret as passwords. */
export function sealNetwork(sealing: Seal, network: NetworkOptions | undefined, id: string): string | null {
  return network === undefined ? null : sealing.close(JSON.stringify(network), networkContext(id));
}

function openNetwork(sealing: Seal, sealed: string | null, id: string): NetworkOptions | undefined {
  return sealed === null ? undefined : (JSON.parse(sealing.open(sealed, networkContext(id))) as NetworkOptions);
}

/** The row of a new sandbox, in state `starting`. */
export function toRow(sandbox: NewSandbox, sealing: Seal): Record<keyof SandboxRow, string | number | null> {
  return {
    id: sandbox.id,
    project_id: sandbox.projectId,
    state: "starting",
    execution_id: sandbox.executionId,
    node_id: sandbox.nodeId,
    address: null,
    template_id: sandbox.templateId,
    build_id: sandbox.buildId,
    alias: sandbox.alias ?? null,
    cpu_count: sandbox.cpuCount,
    memory_mb: sandbox.memoryMB,
    disk_mb: sandbox.diskSizeMB,
    envd_version: sandbox.envdVersion,
    metadata: JSON.stringify(sandbox.metadata),
    envs: sandbox.sealedEnvs,
    network: sealNetwork(sealing, sandbox.network, sandbox.id),
    proxy_password: sandbox.sealedProxyPassword ?? null,
    network_version: 0,
    network_change: null,
    internet: sandbox.internet === undefined ? null : Number(sandbox.internet),
    iam: sandbox.iam === undefined ? null : JSON.stringify(sandbox.iam),
    on_timeout: sandbox.onTimeout,
    on_timeout_memory: Number(sandbox.onTimeoutMemory),
    on_resume: sandbox.onResume,
    snapshot_id: null,
    snapshot_memory: null,
    snapshot_memory_bytes: null,
    snapshot_disk_bytes: null,
    pending_snapshot_id: null,
    pending_snapshot_memory: null,
    pending_snapshot_bytes: null,
    resume_memory: null,
    resume_s: null,
    auto_resume: Number(sandbox.autoResume),
    timeout_s: sandbox.timeoutSeconds,
    created_at: sandbox.createdAt,
    started_at: sandbox.startedAt,
    end_at: sandbox.endAt,
    deadline_at: sandbox.deadlineAt,
    ended_at: null,
    end_reason: null,
    exit_code: null,
    end_detail: null,
    seed_id: sandbox.seedId ?? null,
    volume_mounts: fromMounts(sandbox.volumeMounts),
  };
}

export function toColumns(set: MoveSet): Updateable<SandboxRow> {
  return {
    ...defined({
      execution_id: set.executionId,
      node_id: set.nodeId,
      address: set.address,
      envd_version: set.envdVersion,
      started_at: set.startedAt,
      end_at: set.endAt,
      ended_at: set.endedAt,
    }),
    ...(set.end === undefined ? {} : endColumns(set.end)),
    ...defined({ on_timeout: set.onTimeout }),
    ...nullable(
      set.snapshot,
      ({ id, memory, size }) => ({
        snapshot_id: id,
        snapshot_memory: Number(memory),
        snapshot_memory_bytes: size?.memoryBytes ?? null,
        snapshot_disk_bytes: size?.diskBytes ?? null,
      }),
      NO_SNAPSHOT,
    ),
    ...nullable(
      set.pendingSnapshot,
      ({ id, memory, reservedBytes }) => ({
        pending_snapshot_id: id,
        pending_snapshot_memory: Number(memory),
        pending_snapshot_bytes: reservedBytes ?? null,
      }),
      NO_PENDING_SNAPSHOT,
    ),
    ...nullable(
      set.resumption,
      ({ memory, seconds }) => ({ resume_memory: Number(memory), resume_s: seconds }),
      NO_RESUMPTION,
    ),
  };
}

function endColumns({ reason, exitCode, detail }: End): Updateable<SandboxRow> {
  return { end_reason: reason, exit_code: exitCode ?? null, end_detail: detail ?? null };
}

function endOf({ end_reason: reason, exit_code: exitCode, end_detail: detail }: Selectable<SandboxRow>) {
  if (reason === null) return undefined;
  return { reason, ...(exitCode === null ? {} : { exitCode }), ...(detail === null ? {} : { detail }) };
}

const NO_SNAPSHOT = {
  snapshot_id: null,
  snapshot_memory: null,
  snapshot_memory_bytes: null,
  snapshot_disk_bytes: null,
};
const NO_PENDING_SNAPSHOT = {
  pending_snapshot_id: null,
  pending_snapshot_memory: null,
  pending_snapshot_bytes: null,
};
const NO_RESUMPTION = { resume_memory: null, resume_s: null };

/** Undefined: unchanged; null: cleared. */
function nullable<T>(
  value: T | null | undefined,
  columns: (value: T) => Updateable<SandboxRow>,
  cleared: Updateable<SandboxRow>,
): Updateable<SandboxRow> {
  if (value === undefined) return {};
  return value === null ? cleared : columns(value);
}

function snapshotOf(row: Selectable<SandboxRow>): Snapshot | undefined {
  const { snapshot_id: id, snapshot_memory: memory } = row;
  if (id === null) return undefined;
  const size = sizeOf(row.snapshot_memory_bytes, row.snapshot_disk_bytes);
  return { id, memory: memory === 1, ...defined({ size }) };
}

function pendingSnapshotOf(row: Selectable<SandboxRow>): PendingSnapshot | undefined {
  const { pending_snapshot_id: id, pending_snapshot_memory: memory, pending_snapshot_bytes: bytes } = row;
  if (id === null) return undefined;
  return { id, memory: memory === 1, ...(bytes === null ? {} : { reservedBytes: bytes }) };
}

// Written by this program, so not checked again: JSON columns are trusted.
export function toRecord(row: Selectable<SandboxRow>, sealing: Seal): SandboxRecord {
  return {
    id: row.id,
    projectId: row.project_id,
    state: row.state,
    executionId: row.execution_id,
    nodeId: row.node_id,
    address: row.address ?? undefined,
    templateId: row.template_id,
    buildId: row.build_id,
    alias: row.alias ?? undefined,
    cpuCount: row.cpu_count,
    memoryMB: row.memory_mb,
    diskSizeMB: row.disk_mb,
    envdVersion: row.envd_version,
    metadata: JSON.parse(row.metadata) as Record<string, string>,
    network: openNetwork(sealing, row.network, row.id),
    sealedProxyPassword: row.proxy_password ?? undefined,
    networkVersion: row.network_version,
    volumeMounts: toMounts(row.volume_mounts),
    internet: row.internet === null ? undefined : row.internet === 1,
    iam: row.iam === null ? undefined : (JSON.parse(row.iam) as IdentityTokens),
    onTimeout: row.on_timeout,
    onTimeoutMemory: row.on_timeout_memory === 1,
    onResume: row.on_resume,
    autoResume: row.auto_resume === 1,
    timeoutSeconds: row.timeout_s,
    createdAt: row.created_at,
    startedAt: row.started_at,
    endAt: row.end_at,
    endedAt: row.ended_at ?? undefined,
    end: endOf(row),
    snapshot: snapshotOf(row),
    pendingSnapshot: pendingSnapshotOf(row),
    resumption: row.resume_s === null ? undefined : { memory: row.resume_memory === 1, seconds: row.resume_s },
    seedId: row.seed_id ?? undefined,
  };
}
