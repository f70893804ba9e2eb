/** Migration 0015: what projects use over time, in four steps of time. */

import { type CreateTableBuilder, type Kysely, type Migration, SqliteAdapter, sql } from "kysely";

export const usage: Migration = {
  async up(db: Kysely<unknown>) {
    // A number instead of the project's UUID: there are thousands of samples of each project.
    await db.schema
      .createTable("usage_projects")
      .addColumn("project_id", "text", (column) => column.primaryKey().references("projects.id").onDelete("cascade"))
      .addColumn("number", "integer", (column) => column.notNull().unique())
      .execute();
    // Written for all projects at once, every few seconds: in the order of time they fill few pages. No foreign key, whose
    // check would need an index by project; these samples are deleted after an hour.
    const finest = withValues(
      db.schema
        .createTable("usage_finest")
        .addColumn("at", "bigint", (column) => column.notNull())
        .addColumn("project", "integer", (column) => column.notNull()),
    ).addPrimaryKeyConstraint("usage_finest_pk", ["at", "project"]);
    await inOrderOfKey(db, finest).execute();
    // Read project by project.
    const samples = withValues(
      db.schema
        .createTable("usage_samples")
        .addColumn("project", "integer", (column) =>
          column.notNull().references("usage_projects.number").onDelete("cascade"),
        )
        .addColumn("step", "integer", (column) => column.notNull())
        .addColumn("at", "bigint", (column) => column.notNull()),
    ).addPrimaryKeyConstraint("usage_samples_pk", ["project", "step", "at"]);
    await inOrderOfKey(db, samples).execute();
    await db.schema
      .createTable("usage_blocks")
      .addColumn("project", "integer", (column) =>
        column.notNull().references("usage_projects.number").onDelete("cascade"),
      )
      .addColumn("step", "integer", (column) => column.notNull())
      .addColumn("at", "bigint", (column) => column.notNull())
      .addColumn("samples", "bytea", (column) => column.notNull())
      .addPrimaryKeyConstraint("usage_blocks_pk", ["project", "step", "at"])
      .execute();
    await db.schema
      .createTable("usage_counters")
      .addColumn("execution_id", "text", (column) => column.primaryKey())
      .addColumn("cpu_ms", "bigint", (column) => column.notNull())
      .addColumn("sent_bytes", "bigint", (column) => column.notNull())
      .addColumn("received_bytes", "bigint", (column) => column.notNull())
      .execute();
    await db.schema
      .createTable("usage_spans")
      .addColumn("began", "bigint", (column) => column.primaryKey())
      .addColumn("until", "bigint", (column) => column.notNull())
      .execute();
    await db.schema
      .createTable("usage_marks")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("value", "bigint", (column) => column.notNull())
      .execute();
    // Starts are counted from the events that were added since the last sample.
    await sql`create index events_sequence on events (sequence)`.execute(db);
  },
};

function withValues<T extends string, C extends string>(table: CreateTableBuilder<T, C>) {
  return table
    .addColumn("sandboxes", "integer", (column) => column.notNull())
    .addColumn("starts", "integer", (column) => column.notNull())
    .addColumn("cpu_ms", "bigint", (column) => column.notNull())
    .addColumn("memory_bytes", "bigint", (column) => column.notNull())
    .addColumn("disk_bytes", "bigint", (column) => column.notNull())
    .addColumn("sent_bytes", "bigint", (column) => column.notNull())
    .addColumn("received_bytes", "bigint", (column) => column.notNull());
}

/** SQLite then stores the rows in the order of their key, without an index beside them. PostgreSQL has no such tables. */
function inOrderOfKey<T extends string, C extends string>(db: Kysely<unknown>, table: CreateTableBuilder<T, C>) {
  return db.getExecutor().adapter instanceof SqliteAdapter ? table.modifyEnd(sql`without rowid`) : table;
}
