/** Migration 0017: the identity of this store, and its openings, so that nodes recognise another store and an older copy. */

import type { Kysely, Migration } from "kysely";

export const lineage: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable("store_identity")
      .addColumn("one", "integer", (column) => column.primaryKey())
      .addColumn("store_id", "text", (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .execute();
    await db.schema
      .createTable("store_openings")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("opened_at", "bigint", (column) => column.notNull())
      .addColumn("mark", "bigint", (column) => column.notNull())
      .execute();
  },
};
