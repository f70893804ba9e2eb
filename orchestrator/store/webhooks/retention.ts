/** SQL that bounds the log of deliveries, and the number of those that have not ended. */

import { sql } from "kysely";
import type { Database } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { release } from "./outbox.ts";

export function deliveryRetention(db: Database, { now }: { readonly now: () => number }) {
  return {
    async countPending(): Promise<number> {
      const { count } = await db
        .selectFrom("webhook_deliveries")
        .select((select) => select.fn.countAll<number | string>().as("count"))
        .where("webhook_id", "in", (from) => from.selectFrom("webhooks").select("id"))
        .where("finished_at", "is", null)
        .executeTakeFirstOrThrow();
      return Number(count);
    },

    /** Fails at most `limit` deliveries that a disabled webhook has not sent in time. Returns their number. */
    async abandon(before: number, limit: number): Promise<number> {
      return inTransaction(db, async (session) => {
        const late = await session
          .updateTable("webhook_deliveries")
          .set({ claim: null, status: "failed", due_at: null, finished_at: now(), error_class: "disabled" })
          .where("id", "in", (from) =>
            from
              .selectFrom("webhook_deliveries")
              .select("id")
              .where("webhook_id", "in", (webhooks) =>
                webhooks.selectFrom("webhooks").select("id").where("enabled", "=", 0),
              )
              .where("finished_at", "is", null)
              .where("created_at", "<", before)
              .limit(limit),
          )
          .returning(["webhook_id as webhookId", "stream"])
          .execute();
        const streams = new Map(late.map((each) => [`${each.webhookId} ${each.stream}`, each]));
        // What is younger in the stream is sent when the webhook is enabled again.
        for (const stream of streams.values()) await release(session, stream);
        return late.length;
      });
    },

    /** Deletes at most `limit` entries of each webhook's log that are too old or too many. Returns their number. */
    async forget(old: { readonly before: number; readonly keep: number; readonly limit: number }): Promise<number> {
      const { before, keep, limit } = old;
      const webhooks = await db.selectFrom("webhooks").select("id").execute();
      let count = 0;
      for (const { id } of webhooks) {
        const { rows } = await sql<{ id: string }>`delete from webhook_deliveries where id in (
          select id from webhook_deliveries where webhook_id = ${id} and (
            finished_at < ${before} or finished_at <= (
              select finished_at from webhook_deliveries where webhook_id = ${id} and finished_at is not null
              order by finished_at desc limit 1 offset ${keep}
            )
          ) limit ${limit}
        ) returning id`.execute(db);
        count += rows.length;
      }
      return count;
    },
  };
}
