/** Migration 0009: scopes, expiry and creator of API keys; the seed of a sandbox's tokens; the key of a node's tokens. */

import type { Kysely, Migration } from "kysely";

export const keys: Migration = {
  async up(db: Kysely<unknown>) {
    // One column per statement: SQLite supports no other form. Keys from before may do everything, as they could.
    await db.schema
      .alterTable("api_keys")
      .addColumn("scopes", "text", (column) => column.notNull().defaultTo("read,sandboxes,templates,admin"))
      .execute();
    await db.schema.alterTable("api_keys").addColumn("expires_at", "bigint").execute();
    await db.schema.alterTable("api_keys").addColumn("created_by", "text").execute();
    // Null: the record is from before, and the oldest seed or key made its tokens.
    await db.schema.alterTable("sandboxes").addColumn("seed_id", "text").execute();
    await db.schema.alterTable("nodes").addColumn("key_id", "text").execute();
  },
};
