/**
 * SQL on deliveries of webhooks: claims, ends, the log. A claim is one conditional update that ends by itself after a while,
 * so that a process that dies, and several at once, lose nothing.
 */

import { sql } from "kysely";
import { newUuid } from "../../../shared/ids.ts";
import type { Seal } from "../../../shared/program/seal.ts";
import { nextInOrder } from "../events/events.ts";
import { webhookSecretContext } from "../sealed/contexts.ts";
import type { Database, EventRow, Session } from "../tables.ts";
import { newDelivery } from "./outbox.ts";
import type { DeliveryRow, WebhookRow } from "./row.ts";

/** A delivery that this process may attempt until its claim ends. */
export interface Claimed {
  readonly id: string;
  readonly claim: string;
  readonly webhookId: string;
  readonly kind: DeliveryRow["kind"];
  readonly stream: string;
  readonly eventId: string;
  readonly createdAt: number;
  /** Including the one that the claim is for. */
  readonly attempts: number;
  readonly url: string;
  readonly secret: string;
  readonly failingSince: number | undefined;
  /** Undefined: the event is older than the events that are kept. */
  readonly event: EventRow | undefined;
  /** Body of a test. */
  readonly body: string | undefined;
}

/** What the log keeps of an attempt. */
export interface AttemptFacts {
  readonly at: number;
  readonly durationMs: number;
  readonly httpStatus?: number | undefined;
  readonly errorClass?: string | undefined;
  readonly error?: string | undefined;
  readonly response?: string | undefined;
}

export type Outcome =
  | { readonly is: "delivered" }
  | { readonly is: "retry"; readonly at: number }
  /** Given up. */
  | { readonly is: "failed" };

/** What a failed attempt did to its webhook. */
export interface WebhookHealth {
  /** Attempts that failed since the last success, before this success. */
  readonly failures: number;
  readonly failingSince: number | undefined;
}

export interface LogQuery {
  readonly limit: number;
  readonly status?: DeliveryRow["status"];
  readonly before?: number;
}

/** A delivery with its event, where that still exists. */
export type LoggedDelivery = DeliveryRow & { readonly eventRow: EventRow | undefined };

const UNCLAIMED = { claim: null } as const;

export function deliveryStore(db: Database, { now, sealing }: { now: () => number; sealing: Seal }) {
  const withEvents = async (rows: readonly DeliveryRow[]): Promise<LoggedDelivery[]> => {
    const ids = rows.filter(({ event }) => event === null).map(({ event_id: id }) => id);
    const found = await db.selectFrom("events").selectAll().where("id", "in", ids).execute();
    const events = new Map(found.map((event) => [event.id, event]));
    return rows.map((row) => ({ ...row, eventRow: events.get(row.event_id) }));
  };

  /** A delivery beside the events: a test, or the repetition of an earlier one. */
  async function add(session: Session, delivery: Parameters<typeof newDelivery>[0]): Promise<DeliveryRow> {
    const row = newDelivery(delivery);
    await session.insertInto("webhook_deliveries").values(row).execute();
    return row;
  }

  return {
    /** Webhooks with a delivery that may be claimed now; of a disabled one only what its project asked for. */
    async due(): Promise<{ readonly id: string; readonly projectId: string; readonly failures: number }[]> {
      const rows = await db
        .selectFrom("webhooks")
        .select(["id", "project_id", "failures"])
        .where((where) =>
          where.exists(
            where
              .selectFrom("webhook_deliveries")
              .select("webhook_deliveries.id")
              .whereRef("webhook_deliveries.webhook_id", "=", "webhooks.id")
              .where("webhook_deliveries.due_at", "<=", now())
              .where((either) => either.or([either("webhooks.enabled", "=", 1), either("kind", "!=", "event")])),
          ),
        )
        .execute();
      return rows.map(({ id, project_id: projectId, failures }) => ({ id, projectId, failures }));
    },

    /** The delivery that has been due longest, claimed until `until`. Undefined: none is due. */
    async claim(webhookId: string, until: number): Promise<Claimed | undefined> {
      return db.transaction().execute(async (session) => {
        const webhook = await session.selectFrom("webhooks").selectAll().where("id", "=", webhookId).executeTakeFirst();
        if (webhook === undefined) return undefined;
        const claim = newUuid();
        const row = await session
          .updateTable("webhook_deliveries")
          .set((update) => ({ claim, due_at: until, attempts: update("attempts", "+", 1), attempted_at: now() }))
          .where("id", "=", (from) => {
            const due = from
              .selectFrom("webhook_deliveries")
              .select("id")
              .where("webhook_id", "=", webhookId)
              .where("due_at", "<=", now());
            const wanted = webhook.enabled === 1 ? due : due.where("kind", "!=", "event");
            return wanted.orderBy("due_at").orderBy("sequence").limit(1);
          })
          // Another process may have claimed it since the selection.
          .where("due_at", "<=", now())
          .returningAll()
          .executeTakeFirst();
        if (row === undefined) return undefined;
        const event = await session.selectFrom("events").selectAll().where("id", "=", row.event_id).executeTakeFirst();
        return toClaimed(row, {
          webhook,
          event,
          claim,
          secret: sealing.open(webhook.secret, webhookSecretContext(webhookId)),
        });
      });
    },

    /** Records the end of a claimed attempt. Undefined: the claim had ended, or the webhook was deleted. */
    async finish(claimed: Claimed, outcome: Outcome, facts: AttemptFacts): Promise<WebhookHealth | undefined> {
      return db.transaction().execute(async (session) => {
        const before = await lockWebhook(session, claimed.webhookId);
        if (before === undefined) return undefined;
        const ended = outcome.is !== "retry";
        const result = await session
          .updateTable("webhook_deliveries")
          .set({
            ...UNCLAIMED,
            status: ended ? outcome.is : "pending",
            due_at: outcome.is === "retry" ? outcome.at : null,
            finished_at: ended ? now() : null,
            attempted_at: facts.at,
            duration_ms: Math.round(facts.durationMs),
            http_status: facts.httpStatus ?? null,
            error_class: facts.errorClass ?? null,
            error: facts.error ?? null,
            response: facts.response ?? null,
          })
          .where("id", "=", claimed.id)
          .where("claim", "=", claimed.claim)
          .executeTakeFirst();
        if (result.numUpdatedRows === 0n) return undefined;
        if (ended) await release(session, claimed);
        const failed = outcome.is !== "delivered";
        const failingSince = failed ? (before.failing_since ?? facts.at) : null;
        await session
          .updateTable("webhooks")
          .set({ failures: failed ? before.failures + 1 : 0, failing_since: failingSince })
          .where("id", "=", claimed.webhookId)
          .execute();
        return { failures: before.failures, failingSince: failingSince ?? undefined };
      });
    },

    /** Gives a claim back whose attempt was not made or was cut off: the delivery is due at once. */
    async giveBack({ id, claim }: Claimed): Promise<void> {
      await db
        .updateTable("webhook_deliveries")
        .set({ ...UNCLAIMED, due_at: now() })
        .where("id", "=", id)
        .where("claim", "=", claim)
        .execute();
    },

    /** Ends the waiting time of failed deliveries: their receiver works again. */
    async hurry(webhookId: string): Promise<void> {
      await db
        .updateTable("webhook_deliveries")
        .set({ due_at: now() })
        .where("webhook_id", "=", webhookId)
        .where("due_at", ">", now())
        .where("claim", "is", null)
        .execute();
    },

    /** Newest first. */
    async log(webhookId: string, { limit, status, before }: LogQuery): Promise<LoggedDelivery[]> {
      let query = db.selectFrom("webhook_deliveries").selectAll().where("webhook_id", "=", webhookId);
      if (status !== undefined) query = query.where("status", "=", status);
      if (before !== undefined) query = query.where("sequence", "<", before);
      return withEvents(await query.orderBy("sequence", "desc").limit(limit).execute());
    },

    /** A new delivery with the same event. Undefined: the webhook has no such delivery. */
    async repeat(webhookId: string, id: string): Promise<LoggedDelivery | undefined> {
      const row = await db.transaction().execute(async (session) => {
        const former = await session
          .selectFrom("webhook_deliveries")
          .selectAll()
          .where("id", "=", id)
          .where("webhook_id", "=", webhookId)
          .executeTakeFirst();
        if (former === undefined) return undefined;
        const { last: sequence } = await nextInOrder(session, now());
        const event = { id: former.event_id, type: former.event_type, sequence, created_at: now() };
        return add(session, { webhookId, kind: "redelivery", event, body: former.event, dueAt: now() });
      });
      return row === undefined ? undefined : (await withEvents([row]))[0];
    },

    /** A delivery with an event that never was. */
    async test(webhookId: string, body: (event: { readonly id: string; readonly at: number }) => string) {
      const type = "webhook.test";
      const row = await db.transaction().execute(async (session) => {
        const { last: sequence } = await nextInOrder(session, now());
        const event = { id: newUuid(), type, sequence, created_at: now() };
        const text = body({ id: event.id, at: now() });
        return add(session, { webhookId, kind: "test", event, body: text, dueAt: now() });
      });
      return { ...row, eventRow: undefined };
    },

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
      const result = await db
        .updateTable("webhook_deliveries")
        .set({ ...UNCLAIMED, status: "failed", due_at: null, finished_at: now(), error_class: "disabled" })
        .where("id", "in", (from) =>
          from
            .selectFrom("webhook_deliveries as late")
            .innerJoin("webhooks", "webhooks.id", "late.webhook_id")
            .select("late.id")
            .where("webhooks.enabled", "=", 0)
            .where("late.status", "=", "pending")
            .where("late.created_at", "<", before)
            .limit(limit),
        )
        .executeTakeFirst();
      return Number(result.numUpdatedRows);
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

/** The write makes an event for this webhook wait, so that it finds the stream as this transaction leaves it. */
async function lockWebhook(session: Session, id: string): Promise<WebhookRow | undefined> {
  return session
    .updateTable("webhooks")
    .set((update) => ({ failures: update.ref("failures") }))
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirst();
}

/** The next delivery of the stream is due. */
async function release(session: Session, { webhookId, stream }: Claimed): Promise<void> {
  await session
    .updateTable("webhook_deliveries")
    .set((update) => ({ due_at: update.ref("created_at") }))
    .where("id", "=", (from) =>
      from
        .selectFrom("webhook_deliveries")
        .select("id")
        .where("webhook_id", "=", webhookId)
        .where("stream", "=", stream)
        .where("status", "=", "pending")
        .orderBy("sequence")
        .limit(1),
    )
    .where("due_at", "is", null)
    .execute();
}

function toClaimed(
  row: DeliveryRow,
  more: {
    readonly webhook: WebhookRow;
    readonly event: EventRow | undefined;
    readonly claim: string;
    readonly secret: string;
  },
): Claimed {
  const { webhook, event, claim, secret } = more;
  return {
    id: row.id,
    claim,
    webhookId: row.webhook_id,
    kind: row.kind,
    stream: row.stream,
    eventId: row.event_id,
    createdAt: row.created_at,
    attempts: row.attempts,
    url: webhook.url,
    secret,
    failingSince: webhook.failing_since ?? undefined,
    event,
    body: row.event ?? undefined,
  };
}
