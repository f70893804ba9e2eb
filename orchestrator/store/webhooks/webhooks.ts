/** SQL on webhooks. Their secrets are sealed, and only a delivery opens them. */

import { newUuid } from "../../../shared/ids.ts";
import type { Seal } from "../../../shared/program/sealing/seal.ts";
import { type EventStore, lockOrder } from "../events/events.ts";
import { lock, locks } from "../locks.ts";
import { webhookSecretContext } from "../sealed/contexts.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type Webhook, webhookTable } from "./record.ts";

export interface NewWebhook {
  readonly projectId: string;
  readonly name: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly enabled: boolean;
  readonly secret: string;
}

export type WebhookChange = Partial<Omit<NewWebhook, "projectId">>;

const UNFAILED = { failures: 0, failingSince: null } as const;
const WELL = { ...UNFAILED, disabledAt: null, disabledReason: null } as const;

const { toRecord: toWebhook } = webhookTable;

export function webhookStore(db: Database, deps: { now: () => number; sealing: Seal; events: EventStore }) {
  const { now, sealing, events } = deps;

  const inProject = (session: Session, projectId: string, id: string) =>
    session.selectFrom("webhooks").selectAll().where("id", "=", id).where("project_id", "=", projectId);

  return {
    /** Undefined: the project has `limit` webhooks already. */
    async add(webhook: NewWebhook, limit: number): Promise<Webhook | undefined> {
      return inTransaction(db, async (session) => {
        await lock(session, locks.project(webhook.projectId));
        const { count } = await session
          .selectFrom("webhooks")
          .select((select) => select.fn.countAll<number | string>().as("count"))
          .where("project_id", "=", webhook.projectId)
          .executeTakeFirstOrThrow();
        if (Number(count) >= limit) return undefined;
        const id = newUuid();
        const secret = sealing.close(webhook.secret, webhookSecretContext(id));
        const row = webhookTable.toRow({ ...webhook, id, secret, createdAt: now() });
        await session.insertInto("webhooks").values(row).execute();
        return toWebhook(row);
      });
    },

    /** Oldest first. */
    async list(projectId: string): Promise<Webhook[]> {
      const rows = await db
        .selectFrom("webhooks")
        .selectAll()
        .where("project_id", "=", projectId)
        .orderBy("created_at")
        .orderBy("id")
        .execute();
      return rows.map(toWebhook);
    },

    async get(projectId: string, id: string): Promise<Webhook | undefined> {
      const row = await inProject(db, projectId, id).executeTakeFirst();
      return row === undefined ? undefined : toWebhook(row);
    },

    /** Undefined: the project has no such webhook. Enabling one ends what is known of its failures, and so does another URL. */
    async change(projectId: string, id: string, change: WebhookChange): Promise<Webhook | undefined> {
      const { name, url, events: types, enabled, secret } = change;
      return inTransaction(db, async (session) => {
        const sealed = secret === undefined ? undefined : sealing.close(secret, webhookSecretContext(id));
        const before = await inProject(session, projectId, id).executeTakeFirst();
        const columns = {
          ...(url === undefined || url === before?.url ? {} : webhookTable.toColumns(UNFAILED)),
          ...webhookTable.toColumns({ name, url, events: types, enabled, secret: sealed }),
          ...(enabled === true ? webhookTable.toColumns(WELL) : {}),
        };
        // Only these columns: the end of a delivery writes others at the same time.
        const row = await session
          .updateTable("webhooks")
          .set((update) => ({ name: update.ref("name"), ...columns }))
          .where("id", "=", id)
          .where("project_id", "=", projectId)
          .returningAll()
          .executeTakeFirst();
        return row === undefined ? undefined : toWebhook(row);
      });
    },

    /** With its deliveries. */
    async remove(projectId: string, id: string): Promise<boolean> {
      return inTransaction(db, async (session) => {
        const result = await session
          .deleteFrom("webhooks")
          .where("id", "=", id)
          .where("project_id", "=", projectId)
          .executeTakeFirst();
        return result.numDeletedRows === 1n;
      });
    },

    /** Disables a webhook because of what its receiver does, with an event. False: it was disabled or deleted before. */
    async disable(id: string, reason: "gone" | "failing"): Promise<boolean> {
      return inTransaction(db, async (session) => {
        // Before the webhook, as every event: it locks the webhooks of its project.
        await lockOrder(session);
        const row = await session
          .updateTable("webhooks")
          .set({ enabled: 0, disabled_at: now(), disabled_reason: reason })
          .where("id", "=", id)
          .where("enabled", "=", 1)
          .returningAll()
          .executeTakeFirst();
        if (row === undefined) return false;
        const since = row.failing_since === null ? {} : { failing_since: new Date(row.failing_since).toISOString() };
        await events.addOfWebhook(
          session,
          "webhook.disabled",
          { id, projectId: row.project_id },
          { name: row.name, reason, ...since },
        );
        return true;
      });
    },
  };
}
