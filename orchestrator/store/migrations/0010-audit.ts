/** Migration 0010: the audit log. */

import type { Kysely, Migration } from "kysely";

// No foreign keys: the log outlives what it names.
export const audit: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable("audit_log")
      .addColumn("seq", "bigint", (column) => column.primaryKey())
      .addColumn("at", "bigint", (column) => column.notNull())
      .addColumn("project_id", "text")
      .addColumn("actor_kind", "text", (column) => column.notNull())
      .addColumn("actor_id", "text")
      .addColumn("actor_mask", "text")
      .addColumn("action", "text", (column) => column.notNull())
      .addColumn("object_kind", "text")
      .addColumn("object_id", "text")
      .addColumn("result", "text", (column) => column.notNull())
      .addColumn("status", "integer")
      .addColumn("error_code", "text")
      .addColumn("address", "text")
      .addColumn("request_id", "text")
      .addColumn("refers_to", "bigint")
      .addColumn("details", "text")
      .addColumn("previous_hash", "text", (column) => column.notNull())
      .addColumn("hash", "text", (column) => column.notNull())
      .execute();
    const index = (name: string, columns: string[]) =>
      db.schema.createIndex(name).on("audit_log").columns(columns).execute();
    await index("audit_log_project", ["project_id", "seq"]);
    await index("audit_log_object", ["object_id", "seq"]);
    await index("audit_log_request", ["request_id", "seq"]);
    await db.schema
      .createTable("audit_anchor")
      .addColumn("id", "integer", (column) => column.primaryKey())
      .addColumn("seq", "bigint", (column) => column.notNull())
      .addColumn("hash", "text", (column) => column.notNull())
      .addColumn("at", "bigint", (column) => column.notNull())
      .execute();
  },
};
