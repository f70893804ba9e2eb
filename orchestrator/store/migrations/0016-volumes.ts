/** Migration 0016: volumes, and which sandboxes and snapshots mount them. */

import { type Kysely, type Migration, sql } from "kysely";

export const volumes: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable("volumes")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("project_id", "text", (column) => column.notNull().references("projects.id").onDelete("cascade"))
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("node_id", "text", (column) => column.notNull())
      .addColumn("size_mb", "integer", (column) => column.notNull())
      .addColumn("state", "text", (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .addColumn("updated_at", "bigint", (column) => column.notNull())
      .execute();
    // The name of a volume is free as soon as its deletion has begun.
    await sql`create unique index volumes_name on volumes (project_id, name) where state <> 'deleting'`.execute(db);
    await db.schema.createIndex("volumes_state").on("volumes").columns(["state", "updated_at"]).execute();
    await db.schema
      .createTable("volume_uses")
      .addColumn("volume_id", "text", (column) => column.notNull().references("volumes.id").onDelete("cascade"))
      .addColumn("sandbox_id", "text", (column) => column.references("sandboxes.id").onDelete("cascade"))
      .addColumn("build_id", "text", (column) => column.references("builds.id").onDelete("cascade"))
      .execute();
    await db.schema.createIndex("volume_uses_volume").on("volume_uses").column("volume_id").execute();
    await db.schema.createIndex("volume_uses_sandbox").on("volume_uses").column("sandbox_id").execute();
    await db.schema.createIndex("volume_uses_build").on("volume_uses").column("build_id").execute();
    // A JSON list; null: none.
    await db.schema.alterTable("sandboxes").addColumn("volume_mounts", "text").execute();
    await db.schema.alterTable("builds").addColumn("volume_mounts", "text").execute();
  },
};
