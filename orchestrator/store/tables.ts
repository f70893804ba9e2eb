/** The columns of every table, as Kysely sees them. Times are unix milliseconds, JSON is text, booleans are 0 and 1. */

import type { Kysely, Transaction } from "kysely";
import type { EndReason } from "../../shared/states/end-reason.ts";
import type { SandboxState } from "../../shared/states/sandbox-state.ts";
import type { AuditAnchorRow, AuditRow } from "./audit/row.ts";
import type { IdentityKeyRow } from "./identity/row.ts";
import type { KeyRow } from "./keys/row.ts";
import type { ProjectDeletionRow, ProjectRow, WorkspaceRow } from "./projects/row.ts";
import type { SecretTables } from "./secrets/row.ts";
import type { UsageTables } from "./usage/row.ts";
import type { VolumeRow, VolumeUseRow } from "./volumes/row.ts";
import type { WebhookTables } from "./webhooks/row.ts";

/** `project_id` null: the platform's own, visible to all. */
export interface TemplateRow {
  readonly id: string;
  readonly project_id: string | null;
  readonly public: number;
  /** `snapshot`: made by snapshotting sandboxes, not by building; lists of templates omit it. */
  readonly kind: "template" | "snapshot";
  readonly created_at: number;
  readonly updated_at: number;
  readonly spawn_count: number;
  readonly last_spawned_at: number | null;
}

/** `namespace` '': promoted names, which resolve for every project. */
interface AliasRow {
  readonly namespace: string;
  readonly alias: string;
  readonly template_id: string;
  readonly created_at: number;
}

export interface BuildRow {
  readonly id: string;
  readonly template_id: string;
  readonly status: "waiting" | "building" | "ready" | "error";
  /** `fork`: a checkpoint that exists only while forks start from it. A snapshot's or fork's id is its id on the node. */
  readonly kind: "template" | "snapshot" | "fork";
  /** The only node that has, or makes, the build's files; null when any node can start it, and in the queue. */
  readonly node_id: string | null;
  readonly memory: number | null;
  readonly source_sandbox_id: string | null;
  readonly image: string;
  readonly cpu_count: number;
  readonly memory_mb: number;
  readonly disk_mb: number;
  readonly envd_version: string;
  readonly default_user: string | null;
  readonly default_workdir: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly finished_at: number | null;
  /** Tags that the build gets once it is ready: a JSON list. */
  readonly tags: string | null;
  /** The start request for the node, sealed; null before the build starts and after it has ended. */
  readonly body: string | null;
  /** The image's registry needs credentials, which are in memory only. */
  readonly with_access: number;
  /** `BuildSettings`, sealed: what its sandboxes start with. */
  readonly settings: string | null;
  /** The build that this one is based on. */
  readonly parent_build_id: string | null;
  /** Checkpoint on its node, copied by sandboxes of a template with memory. */
  readonly snapshot_id: string | null;
  /** Size of a snapshot or fork on its node; null until the node has answered. */
  readonly stored_memory_bytes: number | null;
  readonly stored_disk_bytes: number | null;
  readonly started_at: number | null;
  /** The time at which a build that is still building fails. */
  readonly deadline_at: number | null;
  /** The node has confirmed the start request. */
  readonly accepted: number;
  /** Number of entries of the node's log that were read. */
  readonly log_offset: number;
  /** Length of its stored log; at the limit further entries are dropped. */
  readonly log_characters: number;
  readonly reason_message: string | null;
  readonly reason_step: string | null;
  /** What the source of a snapshot mounted (volumes/row.ts). */
  readonly volume_mounts: string | null;
}

export interface BuildLogRow {
  readonly build_id: string;
  /** From 0, without gaps. */
  readonly position: number;
  readonly at: number;
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly step: string | null;
}

/** An archive that a build copies from. */
interface BuildFileRow {
  readonly build_id: string;
  readonly hash: string;
}

/** A node that has not confirmed the removal of a build's files. */
interface BuildRemovalRow {
  readonly build_id: string;
  readonly node_id: string;
  readonly created_at: number;
}

interface TagRow {
  readonly template_id: string;
  readonly tag: string;
  readonly build_id: string;
  readonly created_at: number;
}

export interface SandboxRow {
  readonly id: string;
  readonly project_id: string;
  readonly state: SandboxState;
  readonly execution_id: string;
  readonly node_id: string;
  readonly address: string | null;
  readonly template_id: string;
  readonly build_id: string;
  readonly alias: string | null;
  readonly cpu_count: number;
  readonly memory_mb: number;
  readonly disk_mb: number;
  readonly envd_version: string;
  readonly metadata: string;
  /** Sealed (shared/program/seal.ts). */
  readonly envs: string;
  /** Sealed: headers of its rules may be secrets. */
  readonly network: string | null;
  /** Password of the egress proxy, sealed. Older rows have none. */
  readonly proxy_password: string | null;
  /** Number of changes of `network` that were begun. */
  readonly network_version: number;
  /** A change of `network` that the node may or may not have carried out; sealed (networks.ts). */
  readonly network_change: string | null;
  /** The caller's value; null: not given. */
  readonly internet: number | null;
  /** `IdentityTokens`; null: none. */
  readonly iam: string | null;
  readonly on_timeout: "kill" | "pause";
  readonly on_timeout_memory: number;
  /** What a connect restores when it does not say. */
  readonly on_resume: "restore" | "reboot";
  /** The snapshot on the node that a paused sandbox resumes from. Kept while it starts, also without memory. */
  readonly snapshot_id: string | null;
  readonly snapshot_memory: number | null;
  /** Its size on the node; null until the node has reported it. */
  readonly snapshot_memory_bytes: number | null;
  readonly snapshot_disk_bytes: number | null;
  /** A snapshot under way, written before the node is asked: after a crash it is repeated or dropped. */
  readonly pending_snapshot_id: string | null;
  readonly pending_snapshot_memory: number | null;
  /** Share of the project's quota that it may fill; null without a quota. */
  readonly pending_snapshot_bytes: number | null;
  /** A resume under way: whether memory was asked for, and its timeout in seconds once it runs. */
  readonly resume_memory: number | null;
  readonly resume_s: number | null;
  readonly auto_resume: number;
  readonly timeout_s: number;
  readonly created_at: number;
  readonly started_at: number;
  readonly end_at: number;
  /** Deadline of the transition under way; 0 in a state of rest. */
  readonly deadline_at: number;
  readonly ended_at: number | null;
  /** Set by the move to `killing`, or by the move to `gone` without one: once, and never changed. */
  readonly end_reason: EndReason | null;
  /** Of the sandbox's first process, when its node saw it exit. */
  readonly exit_code: number | null;
  readonly end_detail: string | null;
  /** Names the seed of its tokens (orchestrator/base/seeds.ts). Null: the oldest seed. */
  readonly seed_id: string | null;
  /** What it mounts (volumes/row.ts). */
  readonly volume_mounts: string | null;
}

interface SandboxMetadataRow {
  readonly sandbox_id: string;
  readonly name: string;
  readonly value: string;
}

export interface NodeRow {
  readonly id: string;
  readonly facts: string;
  readonly load: string;
  readonly wanted: "ready" | "draining" | "standby";
  readonly wanted_at: number;
  readonly first_seen_at: number;
  readonly last_heartbeat_at: number;
  /** Names the key of the token with which it last reported. Null: the oldest key. */
  readonly key_id: string | null;
}

export interface EventRow {
  readonly id: string;
  readonly sequence: number;
  readonly type: string;
  readonly project_id: string;
  /** Empty for an event that is about no sandbox. */
  readonly sandbox_id: string;
  readonly execution_id: string;
  readonly template_id: string;
  readonly build_id: string;
  readonly data: string | null;
  readonly created_at: number;
}

interface StoreIdentityRow {
  /** Always 1. */
  readonly one: number;
  readonly store_id: string;
  readonly created_at: number;
}

/** A start of an orchestrator on this store. */
interface StoreOpeningRow {
  readonly id: string;
  readonly opened_at: number;
  /** Grows while the orchestrator runs. */
  readonly mark: number;
}

export interface Tables extends SecretTables, UsageTables, WebhookTables {
  readonly workspaces: WorkspaceRow;
  readonly projects: ProjectRow;
  readonly project_deletions: ProjectDeletionRow;
  readonly api_keys: KeyRow;
  readonly templates: TemplateRow;
  readonly template_aliases: AliasRow;
  readonly builds: BuildRow;
  readonly build_tags: TagRow;
  readonly build_logs: BuildLogRow;
  readonly build_files: BuildFileRow;
  readonly build_removals: BuildRemovalRow;
  readonly sandboxes: SandboxRow;
  readonly sandbox_metadata: SandboxMetadataRow;
  readonly nodes: NodeRow;
  readonly store_identity: StoreIdentityRow;
  readonly store_openings: StoreOpeningRow;
  readonly events: EventRow;
  readonly audit_log: AuditRow;
  readonly audit_anchor: AuditAnchorRow;
  readonly identity_keys: IdentityKeyRow;
  readonly volumes: VolumeRow;
  readonly volume_uses: VolumeUseRow;
}

/** Stores take a transaction or the database itself. */
export type Database = Kysely<Tables>;
export type Session = Database | Transaction<Tables>;
