/**
 * What happened to each node, so that every orchestrator tells the same of it. What changes a row of the database adds its event in
 * that transaction; what orchestrators only see is noted once, by the first that sees it. The only SQL on this table.
 */

import { randomBytes } from "node:crypto";
import { sql } from "kysely";
import type { NodeEventKind } from "../../../shared/api/nodes/node-events.ts";
import { runUnaudited } from "../audit/scope.ts";
import { lock, locks } from "../locks.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type NewNodeEvent, type NodeEventRecord, nodeEventTable } from "./happening-record.ts";

/** Of a node: whoever flaps fills no database. */
const MOST_KEPT = 500;
const RANDOM_BYTES = 6;
const TIME_DIGITS = 14;
const ORDER_DIGITS = 20;

/** How a node is reached, as the last of these kinds says. */
const REACHED: readonly NodeEventKind[] = ["ready", "unreachable", "lost", "returned", "removed"];

/**
 * Kinds that several orchestrators see, or one of them again after its restart: an event is none when the last of the kinds in
 * `after` is one of those in `known`.
 */
const SEEN: Readonly<
  Partial<Record<NodeEventKind, { readonly after: readonly NodeEventKind[]; readonly known: readonly unknown[] }>>
> = {
  ready: { after: [...REACHED, "cordoned", "standby", "draining"], known: ["ready"] },
  unreachable: { after: REACHED, known: ["unreachable", "lost"] },
  returned: { after: REACHED, known: [undefined, "ready", "returned", "removed"] },
  drained: { after: ["draining", "drained"], known: ["drained"] },
};

/** Within the transaction of the change. */
export async function addNodeEvent(session: Session, event: NewNodeEvent): Promise<void> {
  const last = await session
    .selectFrom("node_events")
    .select("id")
    .where("node_id", "=", event.nodeId)
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  const id = `${placeAfter(last?.id, event.at)}-${randomBytes(RANDOM_BYTES).toString("hex")}`;
  await session
    .insertInto("node_events")
    .values(nodeEventTable.toRow({ ...event, id }))
    .execute();
}

/**
 * Sorts by time, within a millisecond by the order in which this process adds, and after the node's last event in any case, which an
 * orchestrator whose clock is ahead may have added.
 */
function placeAfter(last: string | undefined, at: number): string {
  const place = `${digits(Math.round(at), TIME_DIGITS)}-${digits(process.hrtime.bigint(), ORDER_DIGITS)}`;
  if (last === undefined || place > last.slice(0, place.length)) return place;
  const [time = "", order = "0"] = last.split("-");
  return `${time}-${digits(BigInt(order) + 1n, ORDER_DIGITS)}`;
}

function digits(value: number | bigint, count: number): string {
  return String(value).padStart(count, "0");
}

export type NodeEventStore = ReturnType<typeof nodeEventStore>;

export function nodeEventStore(db: Database) {
  async function isNews(session: Session, { nodeId, kind }: NewNodeEvent): Promise<boolean> {
    const seen = SEEN[kind];
    if (seen === undefined) return true;
    const last = await session
      .selectFrom("node_events")
      .select("kind")
      .where("node_id", "=", nodeId)
      .where("kind", "in", seen.after)
      .orderBy("id", "desc")
      .limit(1)
      .executeTakeFirst();
    return !seen.known.includes(last?.kind);
  }

  return {
    /** The newest first. */
    async newest(nodeId: string, limit: number): Promise<NodeEventRecord[]> {
      const rows = await db
        .selectFrom("node_events")
        .selectAll()
        .where("node_id", "=", nodeId)
        .orderBy("id", "desc")
        .limit(limit)
        .execute();
      return rows.map(nodeEventTable.toRecord);
    },

    /** What this process has seen of nodes; what is noted already is left out. It is no change of a request under way. */
    async note(events: readonly NewNodeEvent[]): Promise<void> {
      await runUnaudited(() =>
        inTransaction(db, async (session) => {
          await lock(session, locks.nodeEvents);
          for (const event of events) if (await isNews(session, event)) await addNodeEvent(session, event);
        }),
      );
    },

    /** Deletes those from before, and of each node all but the newest. */
    async forget(before: number): Promise<void> {
      await db.deleteFrom("node_events").where("at", "<", before).execute();
      const place = sql<number>`row_number() over (partition by node_id order by id desc)`;
      await db
        .deleteFrom("node_events")
        .where("id", "in", (select) =>
          select
            .selectFrom(
              select
                .selectFrom("node_events")
                .select(["id", place.as("place")])
                .as("placed"),
            )
            .select("id")
            .where("place", ">", MOST_KEPT),
        )
        .execute();
    },
  };
}
