/** Migration 0008: how a sandbox ended, beside its reason. */

import { type Kysely, type Migration, sql } from "kysely";

export const ends: Migration = {
  async up(db: Kysely<unknown>) {
    // One column per statement: SQLite supports no other form.
    await db.schema.alterTable("sandboxes").addColumn("exit_code", "integer").execute();
    await db.schema.alterTable("sandboxes").addColumn("end_detail", "text").execute();
    // The former name of the reason.
    await sql`update sandboxes set end_reason = 'out_of_memory' where end_reason = 'oom'`.execute(db);
  },
};
