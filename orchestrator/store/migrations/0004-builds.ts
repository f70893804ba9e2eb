/** Migration 0004: template builds. */

import type { Kysely, Migration } from "kysely";

/** Template builds: request, progress, log, and removals that nodes have not confirmed. */
export const builds: Migration = {
  async up(db: Kysely<unknown>) {
    const text = [
      "tags",
      "body",
      "settings",
      "parent_build_id",
      "snapshot_id",
      "reason_message",
      "reason_step",
    ] as const;
    for (const name of text) await db.schema.alterTable("builds").addColumn(name, "text").execute();
    for (const name of ["started_at", "deadline_at"] as const) {
      await db.schema.alterTable("builds").addColumn(name, "bigint").execute();
    }
    for (const name of ["accepted", "with_access", "log_offset", "log_characters"] as const) {
      await db.schema
        .alterTable("builds")
        .addColumn(name, "integer", (column) => column.notNull().defaultTo(0))
        .execute();
    }
    for (const name of ["max_cpu", "max_memory_mb", "max_disk_mb", "max_builds"] as const) {
      await db.schema.alterTable("projects").addColumn(name, "integer").execute();
    }
    await db.schema.createIndex("builds_status").on("builds").columns(["status", "started_at"]).execute();
    await db.schema.createIndex("builds_snapshot").on("builds").column("snapshot_id").execute();
    await db.schema.createIndex("builds_parent").on("builds").column("parent_build_id").execute();
    await db.schema.createIndex("build_tags_build").on("build_tags").column("build_id").execute();
    await db.schema.createIndex("sandboxes_build").on("sandboxes").columns(["build_id", "state"]).execute();
    await db.schema
      .createTable("build_logs")
      .addColumn("build_id", "text", (column) => column.notNull().references("builds.id").onDelete("cascade"))
      .addColumn("position", "integer", (column) => column.notNull())
      .addColumn("at", "bigint", (column) => column.notNull())
      .addColumn("level", "text", (column) => column.notNull())
      .addColumn("message", "text", (column) => column.notNull())
      .addColumn("step", "text")
      .addPrimaryKeyConstraint("build_logs_pk", ["build_id", "position"])
      .execute();
    await db.schema
      .createTable("build_files")
      .addColumn("build_id", "text", (column) => column.notNull().references("builds.id").onDelete("cascade"))
      .addColumn("hash", "text", (column) => column.notNull())
      .addPrimaryKeyConstraint("build_files_pk", ["build_id", "hash"])
      .execute();
    // No foreign key: the build is deleted before its node confirms the removal.
    await db.schema
      .createTable("build_removals")
      .addColumn("build_id", "text", (column) => column.primaryKey())
      .addColumn("node_id", "text", (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .execute();
  },
};
