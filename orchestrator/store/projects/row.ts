/** The rows of projects, of the workspaces that group them, and of deletions of projects. */

/** `disabled`: only reads and deletes; `banned`: no calls; `deleting`: its id is no longer usable. */
export type ProjectStatus = "active" | "disabled" | "banned" | "deleting";

export interface ProjectRow {
  readonly id: string;
  readonly public_id: string;
  readonly name: string;
  readonly slug: string;
  /** Null until the default workspace exists, which then takes the project. */
  readonly workspace_id: string | null;
  /** Null: any node may run its sandboxes. */
  readonly region: string | null;
  readonly status: ProjectStatus;
  readonly status_reason: string | null;
  /** The project's own limits; null: the platform's. */
  readonly max_sandboxes: number | null;
  readonly max_starts_per_minute: number | null;
  readonly max_total_cpu: number | null;
  readonly max_total_memory_mb: number | null;
  readonly max_total_disk_mb: number | null;
  readonly max_sandbox_hours: number | null;
  readonly max_cpu: number | null;
  readonly max_memory_mb: number | null;
  readonly max_disk_mb: number | null;
  readonly max_builds: number | null;
  readonly max_snapshots: number | null;
  readonly max_volumes: number | null;
  readonly max_egress_rules: number | null;
  readonly created_at: number;
}

export interface WorkspaceRow {
  readonly id: string;
  readonly name: string;
  readonly is_default: number;
  readonly created_at: number;
}

/** Outlives its project, so that the progress can be read to the end. */
export interface ProjectDeletionRow {
  readonly project_id: string;
  readonly public_id: string;
  readonly name: string;
  readonly begun_at: number;
  readonly finished_at: number | null;
}
