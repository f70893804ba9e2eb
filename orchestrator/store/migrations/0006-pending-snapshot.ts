/** Migration 0006: the snapshot that a pause or checkpoint is writing was called a capture. */

import type { Kysely, Migration } from "kysely";

export const pendingSnapshot: Migration = {
  async up(db: Kysely<unknown>) {
    // The index follows its column, but its name would stay.
    await db.schema.dropIndex("sandboxes_capture").execute();
    for (const name of ["id", "memory"] as const) {
      await db.schema.alterTable("sandboxes").renameColumn(`capture_${name}`, `pending_snapshot_${name}`).execute();
    }
    await db.schema.createIndex("sandboxes_pending_snapshot").on("sandboxes").column("pending_snapshot_id").execute();
  },
};
