/** Migration 0014: webhooks, the outbox of their deliveries, and the counter that orders events. */

import { type Kysely, type Migration, sql } from "kysely";

export const webhooks: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable("webhooks")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("project_id", "text", (column) => column.notNull())
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("url", "text", (column) => column.notNull())
      .addColumn("secret", "text", (column) => column.notNull())
      .addColumn("events", "text", (column) => column.notNull())
      .addColumn("enabled", "integer", (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .addColumn("last_event_at", "bigint")
      .addColumn("failures", "integer", (column) => column.notNull().defaultTo(0))
      .addColumn("failing_since", "bigint")
      .addColumn("disabled_at", "bigint")
      .addColumn("disabled_reason", "text")
      .execute();
    await db.schema.createIndex("webhooks_project").on("webhooks").columns(["project_id", "created_at"]).execute();
    await deliveries(db);
    await eventOrder(db);
  },
};

async function deliveries(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("webhook_deliveries")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("webhook_id", "text", (column) => column.notNull().references("webhooks.id").onDelete("cascade"))
    .addColumn("kind", "text", (column) => column.notNull())
    .addColumn("event_id", "text", (column) => column.notNull())
    .addColumn("event_type", "text", (column) => column.notNull())
    .addColumn("event", "text")
    .addColumn("stream", "text", (column) => column.notNull())
    .addColumn("sequence", "bigint", (column) => column.notNull())
    .addColumn("status", "text", (column) => column.notNull())
    .addColumn("attempts", "integer", (column) => column.notNull().defaultTo(0))
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("due_at", "bigint")
    .addColumn("claim", "text")
    .addColumn("attempted_at", "bigint")
    .addColumn("finished_at", "bigint")
    .addColumn("duration_ms", "integer")
    .addColumn("http_status", "integer")
    .addColumn("error_class", "text")
    .addColumn("error", "text")
    .addColumn("response", "text")
    .addColumn("earlier", "text")
    .execute();
  const index = (name: string) => db.schema.createIndex(name).on("webhook_deliveries");
  await index("webhook_deliveries_due").columns(["webhook_id", "due_at"]).execute();
  await index("webhook_deliveries_log").columns(["webhook_id", "sequence"]).execute();
  await index("webhook_deliveries_finished").columns(["webhook_id", "finished_at"]).execute();
  // The first pending delivery of a stream is looked up at each event and at each end of a delivery.
  await index("webhook_deliveries_stream").columns(["webhook_id", "stream", "status", "sequence"]).execute();
}

/** One row, made by the first event; a database that has events continues behind them. */
async function eventOrder(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("event_order")
    .addColumn("id", "integer", (column) => column.primaryKey())
    .addColumn("last", "bigint", (column) => column.notNull())
    .execute();
  await sql`insert into event_order (id, last) select 1, max(sequence) from events having count(*) > 0`.execute(db);
}
