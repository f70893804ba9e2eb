/** The rows of every table, as Kysely sees them: from the tables' codecs, or written here where no record is made. */

import type { Kysely, Transaction } from "kysely";
import type { AuditAnchorRow, AuditRow } from "./audit/row.ts";
import type { BuildRow } from "./builds/record.ts";
import type { ChangeTables } from "./changes/record.ts";
import type { IdentityKeyRow } from "./identity/record.ts";
import type { KeyRow } from "./keys/record.ts";
import type { MachineTables } from "./machines/record.ts";
import type { MembershipTables } from "./membership/record.ts";
import type { DrainTables } from "./nodes/drain-record.ts";
import type { HappeningTables } from "./nodes/happening-record.ts";
import type { NodeRow } from "./nodes/record.ts";
import type { OperationRow } from "./operations/record.ts";
import type { ProjectDeletionRow, ProjectRow, WorkspaceRow } from "./projects/record.ts";
import type { SandboxRow } from "./sandboxes/record.ts";
import type { SecretTables } from "./secrets/record.ts";
import type { SessionRow } from "./sessions/record.ts";
import type { BlobRefRow, BlobSweepRow } from "./storage/blob-rows.ts";
import type { TemplateRow } from "./templates/record.ts";
import type { UsageTables } from "./usage/row.ts";
import type { VolumeRow, VolumeUseRow } from "./volumes/record.ts";
import type { WebhookTables } from "./webhooks/record.ts";

/** `namespace` '': promoted names, which resolve for every project. */
interface AliasRow {
  readonly namespace: string;
  readonly alias: string;
  readonly template_id: string;
  readonly created_at: number;
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

interface SandboxMetadataRow {
  readonly sandbox_id: string;
  readonly name: string;
  readonly value: string;
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

/** An execution that its node has frozen, because its disk is short. */
interface HeldExecutionRow {
  readonly execution_id: string;
  readonly sandbox_id: string;
  readonly node_id: string;
  readonly held_at: number;
}

interface GivenUpRow {
  /** Of an execution, a snapshot or a volume. */
  readonly id: string;
  readonly at: number;
}

export interface Tables
  extends ChangeTables,
    DrainTables,
    HappeningTables,
    MachineTables,
    MembershipTables,
    SecretTables,
    UsageTables,
    WebhookTables {
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
  readonly blob_refs: BlobRefRow;
  readonly blob_sweeps: BlobSweepRow;
  readonly operations: OperationRow;
  readonly store_identity: StoreIdentityRow;
  readonly store_openings: StoreOpeningRow;
  readonly events: EventRow;
  readonly audit_log: AuditRow;
  readonly audit_anchor: AuditAnchorRow;
  readonly identity_keys: IdentityKeyRow;
  readonly volumes: VolumeRow;
  readonly volume_uses: VolumeUseRow;
  readonly held_executions: HeldExecutionRow;
  readonly given_up: GivenUpRow;
  readonly console_sessions: SessionRow;
}

/** Stores take a transaction or the database itself. */
export type Database = Kysely<Tables>;
export type Session = Database | Transaction<Tables>;
