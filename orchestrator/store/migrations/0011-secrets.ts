/** Migration 0011: secrets and their uses. */

import type { Kysely, Migration } from "kysely";

export const secrets: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable("secrets")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("project_id", "text", (column) => column.notNull().references("projects.id").onDelete("cascade"))
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("version", "bigint", (column) => column.notNull())
      .addColumn("metadata", "text", (column) => column.notNull())
      .addColumn("value", "text", (column) => column.notNull())
      .addColumn("data_key", "text", (column) => column.notNull())
      .addColumn("key_id", "text", (column) => column.notNull())
      .addColumn("wrapped_at", "bigint", (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .addColumn("updated_at", "bigint", (column) => column.notNull())
      .addColumn("use_count", "bigint", (column) => column.notNull().defaultTo(0))
      .addColumn("last_used_at", "bigint")
      .addUniqueConstraint("secrets_name", ["project_id", "name"])
      .execute();
    await db.schema.createIndex("secrets_key").on("secrets").columns(["key_id", "id"]).execute();
    await db.schema
      .createTable("secret_uses")
      .addColumn("secret_id", "text", (column) => column.notNull().references("secrets.id").onDelete("cascade"))
      .addColumn("execution_id", "text", (column) => column.notNull())
      .addColumn("sandbox_id", "text", (column) => column.notNull().references("sandboxes.id").onDelete("cascade"))
      .addColumn("project_id", "text", (column) => column.notNull())
      .addColumn("node_id", "text", (column) => column.notNull())
      .addColumn("version", "bigint", (column) => column.notNull())
      .addColumn("first_at", "bigint", (column) => column.notNull())
      .addColumn("use_count", "bigint", (column) => column.notNull().defaultTo(0))
      .addColumn("last_at", "bigint")
      .addPrimaryKeyConstraint("secret_uses_pk", ["execution_id", "secret_id"])
      .execute();
    await db.schema.createIndex("secret_uses_secret").on("secret_uses").column("secret_id").execute();
    await db.schema.createIndex("secret_uses_sandbox").on("secret_uses").column("sandbox_id").execute();
    await db.schema
      .createTable("use_reports")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("reported_at", "bigint", (column) => column.notNull())
      .execute();
    await db.schema.createIndex("use_reports_at").on("use_reports").column("reported_at").execute();
    // Nodes name executions when they ask for values.
    await db.schema.createIndex("sandboxes_execution").on("sandboxes").column("execution_id").execute();
  },
};
