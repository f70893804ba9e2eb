/**
 * Deliveries of events, each written in the transaction of its event. A delivery is due at once, or when the one before it in
 * its stream has ended: receivers get the events of a sandbox in order.
 */

import { newUuid } from "../../../shared/ids.ts";
import type { EventRow, Session } from "../tables.ts";
import type { DeliveryRow } from "./record.ts";

/** Returns the number of deliveries. For a project without webhooks it is one statement that finds nothing. */
export async function enqueue(session: Session, event: EventRow): Promise<number> {
  // The write locks the webhook: the end of a delivery either comes before this, or finds the new delivery behind its own.
  const wanting = await session
    .updateTable("webhooks")
    .set({ last_event_at: event.created_at })
    .where("project_id", "=", event.project_id)
    .where("enabled", "=", 1)
    // Types have no characters that JSON escapes or LIKE takes for a pattern other than one `_`, which stands for itself too.
    .where("events", "like", `%"${event.type}"%`)
    .returning("id")
    .execute();
  for (const { id } of wanting) {
    const stream = event.sandbox_id === "" ? id : event.sandbox_id;
    const isFirst = !(await hasPending(session, id, stream));
    await session
      .insertInto("webhook_deliveries")
      .values(newDelivery({ webhookId: id, kind: "event", event, stream, dueAt: isFirst ? event.created_at : null }))
      .execute();
  }
  return wanting.length;
}

interface NewDelivery {
  readonly webhookId: string;
  readonly kind: DeliveryRow["kind"];
  readonly event: Pick<EventRow, "id" | "type" | "sequence" | "created_at">;
  /** The body of a test. */
  readonly body?: string | null;
  /** Absent: it waits for no other. */
  readonly stream?: string;
  readonly dueAt: number | null;
}

export function newDelivery({ webhookId, kind, event, body = null, stream, dueAt }: NewDelivery): DeliveryRow {
  const id = newUuid();
  return {
    id,
    webhook_id: webhookId,
    kind,
    event_id: event.id,
    event_type: event.type,
    event: body,
    stream: stream ?? id,
    sequence: event.sequence,
    status: "pending",
    attempts: 0,
    created_at: event.created_at,
    due_at: dueAt,
    claim: null,
    attempted_at: null,
    finished_at: null,
    duration_ms: null,
    http_status: null,
    error_class: null,
    error: null,
    response: null,
    earlier: null,
  };
}

async function hasPending(session: Session, webhookId: string, stream: string): Promise<boolean> {
  const found = await session
    .selectFrom("webhook_deliveries")
    .select("id")
    .where("webhook_id", "=", webhookId)
    .where("stream", "=", stream)
    .where("status", "=", "pending")
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

interface Stream {
  readonly webhookId: string;
  readonly stream: string;
}

/** The next delivery of the stream is due. */
export async function release(session: Session, { webhookId, stream }: Stream): Promise<void> {
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
