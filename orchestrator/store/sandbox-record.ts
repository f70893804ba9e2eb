/** The sandbox row as the orchestrator speaks of it, and back. Pure. */

import type { Selectable, Updateable } from "kysely";
import type { NetworkOptions } from "../../shared/api/network.ts";
import type { SandboxState } from "../../shared/sandbox-state.ts";
import type { SandboxRow } from "./tables.ts";

/** A sandbox as the orchestrator remembers it. Times are unix milliseconds. */
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
  readonly network: NetworkOptions | undefined;
  /** `allow_internet_access` as the caller gave it. */
  readonly internet: boolean | undefined;
  readonly onTimeout: "kill" | "pause";
  readonly autoResume: boolean;
  /** The timeout asked for at create. */
  readonly timeoutSeconds: number;
  readonly createdAt: number;
  readonly startedAt: number;
  readonly endAt: number;
  readonly endedAt: number | undefined;
  readonly endReason: string | undefined;
}

/** `sealedEnvs`: see seal.ts. */
export interface NewSandbox extends Omit<SandboxRecord, "state" | "address" | "endedAt" | "endReason"> {
  readonly sealedEnvs: string;
  readonly deadlineAt: number;
}

export interface MoveSet {
  readonly executionId?: string;
  readonly nodeId?: string;
  readonly address?: string;
  readonly envdVersion?: string;
  readonly startedAt?: number;
  readonly endAt?: number;
  readonly deadlineAt?: number;
  readonly endedAt?: number;
  readonly endReason?: string;
}

/** A new sandbox is `starting`. */
export function toRow(sandbox: NewSandbox): Record<keyof SandboxRow, string | number | null> {
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
    network: sandbox.network === undefined ? null : JSON.stringify(sandbox.network),
    internet: sandbox.internet === undefined ? null : Number(sandbox.internet),
    on_timeout: sandbox.onTimeout,
    auto_resume: Number(sandbox.autoResume),
    timeout_s: sandbox.timeoutSeconds,
    created_at: sandbox.createdAt,
    started_at: sandbox.startedAt,
    end_at: sandbox.endAt,
    deadline_at: sandbox.deadlineAt,
    ended_at: null,
    end_reason: null,
  };
}

export function toColumns(set: MoveSet): Updateable<SandboxRow> {
  return {
    ...(set.executionId === undefined ? {} : { execution_id: set.executionId }),
    ...(set.nodeId === undefined ? {} : { node_id: set.nodeId }),
    ...(set.address === undefined ? {} : { address: set.address }),
    ...(set.envdVersion === undefined ? {} : { envd_version: set.envdVersion }),
    ...(set.startedAt === undefined ? {} : { started_at: set.startedAt }),
    ...(set.endAt === undefined ? {} : { end_at: set.endAt }),
    ...(set.endedAt === undefined ? {} : { ended_at: set.endedAt }),
    ...(set.endReason === undefined ? {} : { end_reason: set.endReason }),
  };
}

// Our own writing, so trusted: JSON columns are not checked again.
export function toRecord(row: Selectable<SandboxRow>): SandboxRecord {
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
    network: row.network === null ? undefined : (JSON.parse(row.network) as NetworkOptions),
    internet: row.internet === null ? undefined : row.internet === 1,
    onTimeout: row.on_timeout,
    autoResume: row.auto_resume === 1,
    timeoutSeconds: row.timeout_s,
    createdAt: row.created_at,
    startedAt: row.started_at,
    endAt: row.end_at,
    endedAt: row.ended_at ?? undefined,
    endReason: row.end_reason ?? undefined,
  };
}
