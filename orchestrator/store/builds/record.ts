/** The record of a build, and its conversion from a database row. */

import { type SnapshotSize, sizeOf } from "../storage/size.ts";
import type { BuildRow } from "../tables.ts";
import { toMounts, type VolumeMount } from "../volumes/row.ts";

export interface Build {
  readonly id: string;
  readonly templateId: string;
  readonly status: BuildRow["status"];
  readonly image: string;
  readonly cpuCount: number;
  readonly memoryMB: number;
  readonly diskSizeMB: number;
  readonly envdVersion: string;
  readonly defaultUser: string | undefined;
  readonly defaultWorkdir: string | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly finishedAt: number | undefined;
  readonly kind: BuildRow["kind"];
  /** Where a snapshot is; undefined for what any node can start. */
  readonly nodeId: string | undefined;
  readonly memory: boolean;
  readonly sourceSandboxId: string | undefined;
  /** Tags that a template's build gets once it is ready. */
  readonly wantedTags: readonly string[];
  /** `BuildSettings`, sealed (builds/settings.ts). */
  readonly sealedSettings: string | undefined;
  readonly parentBuildId: string | undefined;
  /** Checkpoint of a template whose start command runs: sandboxes start as copies of it, on the build's node. */
  readonly snapshotId: string | undefined;
  /** Size on its node; undefined until the node has answered. */
  readonly size: SnapshotSize | undefined;
  readonly startedAt: number | undefined;
  readonly deadlineAt: number | undefined;
  /** The build needs registry credentials, which are in memory only. */
  readonly withAccess: boolean;
  /** The node has confirmed the start request. */
  readonly accepted: boolean;
  /** Number of entries of the node's log that have been read. */
  readonly logOffset: number;
  /** What the source of a snapshot mounted, and what its copies mount. */
  readonly volumeMounts: readonly VolumeMount[];
  /** The reason why the build failed. */
  readonly reason: { readonly message: string; readonly step: string | undefined } | undefined;
}

export function toBuild(row: BuildRow): Build {
  return {
    id: row.id,
    templateId: row.template_id,
    status: row.status,
    image: row.image,
    cpuCount: row.cpu_count,
    memoryMB: row.memory_mb,
    diskSizeMB: row.disk_mb,
    envdVersion: row.envd_version,
    defaultUser: row.default_user ?? undefined,
    defaultWorkdir: row.default_workdir ?? undefined,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    finishedAt: row.finished_at ?? undefined,
    kind: row.kind,
    nodeId: row.node_id ?? undefined,
    memory: row.memory === 1,
    sourceSandboxId: row.source_sandbox_id ?? undefined,
    wantedTags: row.tags === null ? [] : (JSON.parse(row.tags) as string[]),
    sealedSettings: row.settings ?? undefined,
    parentBuildId: row.parent_build_id ?? undefined,
    snapshotId: row.snapshot_id ?? undefined,
    size: sizeOf(row.stored_memory_bytes, row.stored_disk_bytes),
    startedAt: row.started_at ?? undefined,
    deadlineAt: row.deadline_at ?? undefined,
    withAccess: row.with_access === 1,
    accepted: row.accepted === 1,
    logOffset: row.log_offset,
    volumeMounts: toMounts(row.volume_mounts),
    reason:
      row.reason_message === null ? undefined : { message: row.reason_message, step: row.reason_step ?? undefined },
  };
}
