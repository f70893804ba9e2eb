/** Migration 0013: workspaces, regions, standing and limits of projects, and their deletion. */

import type { Kysely, Migration } from "kysely";

const LIMITS = [
  "max_starts_per_minute",
  "max_total_cpu",
  "max_total_memory_mb",
  "max_total_disk_mb",
  "max_snapshots",
  "max_volumes",
  "max_egress_rules",
] as const;

export const projects: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable("workspaces")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("is_default", "integer", (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .execute();
    // No foreign key: the row outlives its project.
    await db.schema
      .createTable("project_deletions")
      .addColumn("project_id", "text", (column) => column.primaryKey())
      .addColumn("public_id", "text", (column) => column.notNull())
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("begun_at", "bigint", (column) => column.notNull())
      .addColumn("finished_at", "bigint")
      .execute();
    // One column per statement: SQLite supports no other form.
    const project = () => db.schema.alterTable("projects");
    await project().addColumn("workspace_id", "text").execute();
    await project().addColumn("region", "text").execute();
    await project()
      .addColumn("status", "text", (column) => column.notNull().defaultTo("active"))
      .execute();
    await project().addColumn("status_reason", "text").execute();
    for (const name of LIMITS) await project().addColumn(name, "bigint").execute();
    await db.schema.createIndex("projects_workspace").on("projects").column("workspace_id").execute();
  },
};
