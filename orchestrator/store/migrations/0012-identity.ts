/** Migration 0012: workload identity tokens of sandboxes, and the keys that sign them. */

import type { Kysely, Migration } from "kysely";

export const identity: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable("sandboxes").addColumn("iam", "text").execute();
    await db.schema
      .createTable("identity_keys")
      .addColumn("sequence", "integer", (column) => column.primaryKey())
      .addColumn("kid", "text", (column) => column.notNull().unique())
      .addColumn("algorithm", "text", (column) => column.notNull())
      .addColumn("public_key", "text", (column) => column.notNull())
      .addColumn("private_key", "text")
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .addColumn("signs_from", "bigint", (column) => column.notNull())
      .addColumn("token_ms", "bigint", (column) => column.notNull())
      .execute();
  },
};
