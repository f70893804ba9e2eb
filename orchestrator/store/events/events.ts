/**
 * Events, each written in the transaction of its change: exactly once for each. Their sequence follows the order in which
 * transactions end, so a reader that has seen one has seen all before it.
 */

import { sql } from "kysely";
import type { EventType } from "../../../shared/api/events.ts";
import { newUuid } from "../../../shared/ids.ts";
import type { Database, EventRow, Session } from "../tables.ts";
import { afterCommit } from "../transactions.ts";
import { enqueue } from "../webhooks/outbox.ts";
import { type EventData, type EventSubject, eventData } from "./event-data.ts";

export interface EventPage {
  readonly offset: number;
  readonly limit: number;
  readonly ascending: boolean;
  readonly sandboxId?: string;
}

/** Which events of a project a reader wants; absent: all. Times are unix milliseconds, `before` is excluded. */
export interface EventFilter {
  readonly types?: readonly string[];
  readonly sandboxId?: string;
  readonly templateId?: string;
  readonly from?: number;
  readonly before?: number;
}

export interface EventCursor {
  readonly limit: number;
  readonly ascending: boolean;
  /** Sequence of the last event that the reader has. */
  readonly after?: number;
}

/** @param deliveries number of webhooks that get the event */
type Listener = (projectId: string, deliveries: number) => void;

/** A webhook as the subject of an event. */
export interface WebhookSubject {
  readonly id: string;
  readonly projectId: string;
}

export type EventStore = ReturnType<typeof eventStore>;

const NO_SANDBOX = { sandbox_id: "", execution_id: "", template_id: "", build_id: "" } as const;

export function eventStore(db: Database, now: () => number) {
  const listeners = new Set<Listener>();

  async function insert(session: Session, event: Omit<EventRow, "id" | "sequence" | "created_at">): Promise<void> {
    const { last } = await nextInOrder(session, now());
    const row: EventRow = { ...event, id: newUuid(), sequence: last, created_at: now() };
    await session.insertInto("events").values(row).execute();
    const deliveries = await enqueue(session, row);
    afterCommit(session, () => {
      for (const listener of listeners) listener(event.project_id, deliveries);
    });
  }

  return {
    async add(session: Session, type: EventType, sandbox: EventSubject, given?: EventData): Promise<void> {
      const wasPaused = type === "killed" && (await isPaused(session, sandbox));
      const data = eventData(type, sandbox, given, { now: now(), wasPaused });
      await insert(session, {
        type: `sandbox.lifecycle.${type}`,
        project_id: sandbox.projectId,
        sandbox_id: sandbox.id,
        execution_id: sandbox.executionId,
        template_id: sandbox.templateId,
        build_id: sandbox.buildId,
        data: data === undefined ? null : JSON.stringify(data),
      });
    },

    async addOfWebhook(session: Session, type: string, { id, projectId }: WebhookSubject, given: EventData) {
      const data = JSON.stringify({ webhook_id: id, ...given });
      await insert(session, { ...NO_SANDBOX, type, project_id: projectId, data });
    },

    /** Calls the listener for each event of this process once it is there. Returns the end of that. */
    onAdded(listener: Listener): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },

    /** Events of sandboxes only. */
    async list(projectId: string, page: EventPage): Promise<EventRow[]> {
      let query = db.selectFrom("events").selectAll().where("project_id", "=", projectId);
      if (page.sandboxId === undefined) query = query.where("sandbox_id", "!=", "");
      else query = query.where("sandbox_id", "=", page.sandboxId);
      return query
        .orderBy("sequence", page.ascending ? "asc" : "desc")
        .limit(page.limit)
        .offset(page.offset)
        .execute();
    },

    async read(projectId: string, filter: EventFilter, cursor: EventCursor): Promise<EventRow[]> {
      const { types, sandboxId, templateId, from, before } = filter;
      let query = db.selectFrom("events").selectAll().where("project_id", "=", projectId);
      if (types !== undefined) query = query.where("type", "in", types);
      if (sandboxId !== undefined) query = query.where("sandbox_id", "=", sandboxId);
      if (templateId !== undefined) query = query.where("template_id", "=", templateId);
      if (from !== undefined) query = query.where("created_at", ">=", from);
      if (before !== undefined) query = query.where("created_at", "<", before);
      if (cursor.after !== undefined) query = query.where("sequence", cursor.ascending ? ">" : "<", cursor.after);
      return query
        .orderBy("sequence", cursor.ascending ? "asc" : "desc")
        .limit(cursor.limit)
        .execute();
    },

    /**
     * The builds of creates and the times of their requests, in the order of the starts; without those that mount volumes, which no
     * warm container can be for.
     * @param range.after sequence of the last event that the reader knows; absent: only the newest ones
     */
    async created({
      after,
      until,
      most,
    }: {
      readonly after: number | undefined;
      readonly until: number;
      readonly most: number;
    }): Promise<{ readonly buildId: string; readonly at: number }[]> {
      let query = db
        .selectFrom("events")
        .leftJoin("sandboxes", "sandboxes.id", "events.sandbox_id")
        .select(["events.build_id", "events.created_at", "sandboxes.created_at as asked_at"])
        .where("events.type", "=", "sandbox.lifecycle.created")
        .where("sandboxes.volume_mounts", "is", null)
        .where("events.sequence", "<=", until);
      if (after !== undefined) query = query.where("events.sequence", ">", after);
      const rows = await query.orderBy("events.sequence", "desc").limit(most).execute();
      return rows.map((row) => ({ buildId: row.build_id, at: row.asked_at ?? row.created_at })).toReversed();
    },

    /** Sequence of the newest event of all projects, 0 before the first. */
    async newest(): Promise<number> {
      return (await db.selectFrom("event_order").select("last").executeTakeFirst())?.last ?? 0;
    },

    async forget(before: number): Promise<void> {
      await db.deleteFrom("events").where("created_at", "<", before).execute();
    },
  };
}

/**
 * The next place in the order of events: microseconds, or one more than the last where the clock has not moved on or was set
 * back. Locks the counter until the transaction ends, so that places follow the order of ends.
 */
export async function nextInOrder(session: Session, now: number): Promise<{ readonly last: number }> {
  return session
    .insertInto("event_order")
    .values({ id: 1, last: now * 1000 })
    .onConflict((conflict) =>
      conflict.column("id").doUpdateSet({
        last: sql<number>`case when excluded.last > event_order.last then excluded.last else event_order.last + 1 end`,
      }),
    )
    .returning("last")
    .executeTakeFirstOrThrow();
}

/** Lets no other transaction add an event until this one ends. */
export async function lockOrder(session: Session): Promise<void> {
  await session
    .updateTable("event_order")
    .set((update) => ({ last: update.ref("last") }))
    .where("id", "=", 1)
    .execute();
}

async function isPaused(session: Session, { id, executionId }: EventSubject): Promise<boolean> {
  const paused = await session
    .selectFrom("events")
    .select("id")
    .where("sandbox_id", "=", id)
    .where("execution_id", "=", executionId)
    .where("type", "=", "sandbox.lifecycle.paused")
    .limit(1)
    .executeTakeFirst();
  return paused !== undefined;
}
