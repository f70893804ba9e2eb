/** Migration 0007: sizes of paused sandboxes and snapshots, which quotas of projects add up. */

import type { Kysely, Migration } from "kysely";

const COLUMNS = {
  sandboxes: ["snapshot_memory_bytes", "snapshot_disk_bytes", "pending_snapshot_bytes"],
  builds: ["stored_memory_bytes", "stored_disk_bytes"],
} as const;

/** Sizes of earlier snapshots stay null until their node reports them (repairs/heartbeat.ts). */
export const storedSizes: Migration = {
  async up(db: Kysely<unknown>) {
    // One column per statement: SQLite supports no other form.
    for (const [table, names] of Object.entries(COLUMNS)) {
      for (const name of names) await db.schema.alterTable(table).addColumn(name, "bigint").execute();
    }
  },
};
