/**
 * SQL on deliveries of webhooks: claims, ends, the log. A claim is one conditional update that ends by itself after a while,
 * so that a process that dies, and several at once, lose nothing.
 */

import { newUuid } from "../../../shared/ids.ts";
import type { Seal } from "../../../shared/program/sealing/seal.ts";
import { nextInOrder } from "../events/events.ts";
import { isPostgres } from "../locks.ts";
import { webhookSecretContext } from "../sealed/contexts.ts";
import type { Database, EventRow, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type AttemptFacts, attemptsBefore, endColumns } from "./attempts.ts";
import { newDelivery, release } from "./outbox.ts";
import type { DeliveryRow, WebhookRow } from "./record.ts";
import { deliveryRetention } from "./retention.ts";

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
  /** As the webhook's row had it. */
  readonly sealedSecret: string;
  readonly failingSince: number | undefined;
  /** Undefined: the event is older than the events that are kept. */
  readonly event: EventRow | undefined;
  /** Body of a test. */
  readonly body: string | undefined;
}

export interface DueWebhook {
  readonly id: string;
  readonly projectId: string;
  readonly failures: number;
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
    ...deliveryRetention(db, { now }),

    /**
     * Webhooks with a delivery that may be claimed now; of a disabled one only what its project asked for.
     * @param projectIds absent: webhooks of all projects, each of which is looked at
     */
    async due(projectIds?: readonly string[]): Promise<DueWebhook[]> {
      const webhooks = db.selectFrom("webhooks").select(["id", "project_id", "failures"]);
      const rows = await (projectIds === undefined ? webhooks : webhooks.where("project_id", "in", projectIds))
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

    /**
     * The delivery that has been due longest, claimed for `forMs`. Undefined: none is due.
     * @param underWay deliveries that this process attempts: a claim that ended because it is busy is not for itself
     */
    async claim(webhookId: string, forMs: number, underWay: readonly string[] = []): Promise<Claimed | undefined> {
      const claim = newUuid();
      const at = now();
      const row = await db
        .updateTable("webhook_deliveries")
        .set((update) => ({
          claim,
          due_at: at + forMs,
          attempts: update("attempts", "+", 1),
          attempted_at: update.fn.coalesce("attempted_at", update.val(at)),
        }))
        .where("id", "=", (from) => {
          const due = from
            .selectFrom("webhook_deliveries as due")
            .innerJoin("webhooks", "webhooks.id", "due.webhook_id")
            .select("due.id")
            .where("due.webhook_id", "=", webhookId)
            .where("due.due_at", "<=", at)
            .where((either) => either.or([either("webhooks.enabled", "=", 1), either("due.kind", "!=", "event")]))
            .orderBy("due.due_at")
            .orderBy("due.sequence")
            .limit(1)
            // The one that another process claims at this moment is left to it, and the next one is taken.
            .$if(isPostgres(db), (query) => query.forUpdate("due").skipLocked());
          return underWay.length === 0 ? due : due.where("due.id", "not in", underWay);
        })
        // Another process may have claimed it since the selection.
        .where("due_at", "<=", at)
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) return undefined;
      if (row.attempts > 1) {
        await db
          .updateTable("webhook_deliveries")
          .set({ ...endColumns(undefined), earlier: attemptsBefore(row), attempted_at: at })
          .where("id", "=", row.id)
          .where("claim", "=", claim)
          .execute();
      }
      const webhook = await db.selectFrom("webhooks").selectAll().where("id", "=", webhookId).executeTakeFirst();
      // It was deleted, and the delivery with it.
      if (webhook === undefined) return undefined;
      const event = await db.selectFrom("events").selectAll().where("id", "=", row.event_id).executeTakeFirst();
      return toClaimed(row, {
        webhook,
        event,
        claim,
        secret: sealing.open(webhook.secret, webhookSecretContext(webhookId)),
      });
    },

    /**
     * Records the end of a claimed attempt. Undefined: it tells nothing about the webhook, because the claim had ended, or the
     * webhook was deleted or has another URL or secret.
     */
    async finish(claimed: Claimed, outcome: Outcome, facts: AttemptFacts): Promise<WebhookHealth | undefined> {
      return inTransaction(db, async (session) => {
        const before = await lockWebhook(session, claimed.webhookId);
        if (before === undefined) return undefined;
        const ended = outcome.is !== "retry";
        const isMoved = before.url !== claimed.url || before.secret !== claimed.sealedSecret;
        const result = await session
          .updateTable("webhook_deliveries")
          .set({
            ...UNCLAIMED,
            status: ended ? outcome.is : "pending",
            due_at: dueAfter(outcome, isMoved ? now() : undefined),
            finished_at: ended ? now() : null,
            attempted_at: facts.at,
            ...endColumns(facts),
          })
          .where("id", "=", claimed.id)
          .where("claim", "=", claimed.claim)
          .executeTakeFirst();
        if (result.numUpdatedRows === 0n) return undefined;
        if (ended) await release(session, claimed);
        if (isMoved) return undefined;
        const failed = outcome.is !== "delivered";
        const failingSince = failed ? (before.failing_since ?? facts.at) : null;
        if (failed || before.failures > 0) {
          await session
            .updateTable("webhooks")
            .set({ failures: failed ? before.failures + 1 : 0, failing_since: failingSince })
            .where("id", "=", claimed.webhookId)
            .execute();
        }
        return { failures: before.failures, failingSince: failingSince ?? undefined };
      });
    },

    /** Gives a claim back whose attempt was not made or was cut off: the delivery is due at once. */
    async returnClaim({ id, claim }: Claimed): Promise<void> {
      await db
        .updateTable("webhook_deliveries")
        .set({ ...UNCLAIMED, due_at: now() })
        .where("id", "=", id)
        .where("claim", "=", claim)
        .execute();
    },

    /** Ends the waiting time of failed deliveries: their receiver works again. */
    async retryNow(webhookId: string): Promise<void> {
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
      const row = await inTransaction(db, async (session) => {
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
      const row = await inTransaction(db, async (session) => {
        const { last: sequence } = await nextInOrder(session, now());
        const event = { id: newUuid(), type, sequence, created_at: now() };
        const text = body({ id: event.id, at: now() });
        return add(session, { webhookId, kind: "test", event, body: text, dueAt: now() });
      });
      return { ...row, eventRow: undefined };
    },
  };
}

/** @param movedAt the webhook has another URL or secret since, and what failed is tried with that one */
function dueAfter(outcome: Outcome, movedAt: number | undefined): number | null {
  return outcome.is === "retry" ? (movedAt ?? outcome.at) : null;
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
    sealedSecret: webhook.secret,
    failingSince: webhook.failing_since ?? undefined,
    event,
    body: row.event ?? undefined,
  };
}
