/** The columns of every table, as Kysely sees them. Times are unix milliseconds, JSON is text, booleans are 0 and 1. */

import type { Kysely, Transaction } from "kysely";
import type { SandboxState } from "../../shared/states/sandbox-state.ts";

export interface ProjectRow {
  readonly id: string;
  readonly public_id: string;
  readonly name: string;
  readonly slug: string;
  readonly max_sandboxes: number | null;
  readonly max_sandbox_hours: number | null;
  readonly max_cpu: number | null;
  readonly max_memory_mb: number | null;
  readonly max_disk_mb: number | null;
  readonly max_builds: number | null;
  readonly created_at: number;
}

export interface KeyRow {
  readonly id: string;
  readonly project_id: string;
  readonly name: string;
  readonly hash: string;
  readonly mask_prefix: string;
  readonly mask_suffix: string;
  readonly value_length: number;
  readonly created_at: number;
  readonly last_used_at: number | null;
}

/** `project_id` null: the platform's own, public to all. */
export interface TemplateRow {
  readonly id: string;
  readonly project_id: string | null;
  readonly public: number;
  /** `snapshot`: made by snapshotting sandboxes, not by building; not among the templates that are listed. */
  readonly kind: "template" | "snapshot";
  readonly created_at: number;
  readonly updated_at: number;
  readonly spawn_count: number;
  readonly last_spawned_at: number | null;
}

/** `namespace` '': promoted names, which everybody resolves. */
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
  /** `fork`: a checkpoint that lives only while forks start from it. The id of a snapshot or fork is its id on the node. */
  readonly kind: "template" | "snapshot" | "fork";
  /** The only place of what it made, or is making; null for what any node can start, and in the queue. */
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
  /** Those it gets once it is ready: a JSON list. */
  readonly tags: string | null;
  /** What the node is told, sealed; null before it starts and after it has ended. */
  readonly body: string | null;
  /** Image of a private registry: the credentials are in memory only. */
  readonly with_access: number;
  /** `BuildSettings`, sealed: what its sandboxes start with. */
  readonly settings: string | null;
  /** What it is based on. */
  readonly parent_build_id: string | null;
  /** On its node: the checkpoint that sandboxes of a template start as copies of. */
  readonly snapshot_id: string | null;
  readonly started_at: number | null;
  /** While it builds: it has failed if it is not over by then. */
  readonly deadline_at: number | null;
  /** Its node has said that it has it. */
  readonly accepted: number;
  /** Entries of the node's log that have been read. */
  readonly log_offset: number;
  /** Length of its stored log; at its limit nothing more is kept. */
  readonly log_characters: number;
  readonly reason_message: string | null;
  readonly reason_step: string | null;
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

/** A node that is still to be told to remove what it made for a build. */
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
  /** Of the egress proxy; sealed. Older rows have none. */
  readonly proxy_password: string | null;
  /** Counts the changes of `network` that were begun. */
  readonly network_version: number;
  /** A change of `network` that the node may or may not have carried out; sealed (networks.ts). */
  readonly network_change: string | null;
  /** What the caller said: null = nothing. */
  readonly internet: number | null;
  readonly on_timeout: "kill" | "pause";
  readonly on_timeout_memory: number;
  /** What a connect restores that does not say. */
  readonly on_resume: "restore" | "reboot";
  /** On the node: what a paused sandbox is resumed from. Stays while it starts, and after a start without memory. */
  readonly snapshot_id: string | null;
  readonly snapshot_memory: number | null;
  /** A capture under way, known before the node is: a crash can repeat it or give it up. */
  readonly capture_id: string | null;
  readonly capture_memory: number | null;
  /** Of a resume under way: whether memory was asked for, and seconds to live once it runs. */
  readonly resume_memory: number | null;
  readonly resume_s: number | null;
  readonly auto_resume: number;
  readonly timeout_s: number;
  readonly created_at: number;
  readonly started_at: number;
  readonly end_at: number;
  /** Until when the transition under way must have ended; 0 in a state of rest. */
  readonly deadline_at: number;
  readonly ended_at: number | null;
  readonly end_reason: string | null;
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
}

export interface EventRow {
  readonly id: string;
  readonly sequence: number;
  readonly type: string;
  readonly project_id: string;
  readonly sandbox_id: string;
  readonly execution_id: string;
  readonly template_id: string;
  readonly build_id: string;
  readonly data: string | null;
  readonly created_at: number;
}

export interface Tables {
  readonly projects: ProjectRow;
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
  readonly events: EventRow;
}

/** A store works inside a transaction as well as outside one. */
export type Database = Kysely<Tables>;
export type Session = Database | Transaction<Tables>;
