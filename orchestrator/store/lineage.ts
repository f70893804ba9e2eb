/**
 * The identity of the store and how far it has come. Each start of an orchestrator is an opening; its mark grows while it
 * runs and is on the disk before a node hears of it, so a node that has heard of a mark which this store lacks knows that
 * the store is an older copy. Several orchestrators have an opening each, with the id of the member. The rows stay: a node
 * that comes back after months names one. The only SQL on these tables.
 */

import { type Kysely, sql } from "kysely";
import type { StoreMark } from "../../shared/agent-api/routes.ts";
import { newUuid } from "../../shared/ids.ts";
import { CLOCK } from "./membership/clock.ts";
import type { Database, Tables } from "./tables.ts";

export interface Lineage {
  /** The last durable mark of this opening. */
  now(): StoreMark;
  /** Makes everything that was written until now durable, and the mark with it. */
  advance(): Promise<void>;
  /** The last durable mark of an opening; undefined: this store never had it. */
  reached(opening: string): Promise<number | undefined>;
  /** The openings of the other orchestrators that use the store now. */
  beside(): Promise<string[]>;
}

interface LineageDeps {
  readonly now: () => number;
  /** Its commits are durable only on request, where PostgreSQL's are always. */
  readonly sqlite: boolean;
  /** Id of this process among the orchestrators; absent: it is the only one. */
  readonly memberId?: string;
}

export async function createLineage(db: Database, { now, sqlite, memberId }: LineageDeps): Promise<Lineage> {
  const opening = memberId ?? newUuid();
  const storeId = await db.transaction().execute(async (session) => {
    await session
      .insertInto("store_identity")
      .values({ one: 1, store_id: newUuid(), created_at: now() })
      .onConflict((conflict) => conflict.column("one").doNothing())
      .execute();
    await session.insertInto("store_openings").values({ id: opening, opened_at: now(), mark: 0 }).execute();
    return (await session.selectFrom("store_identity").select("store_id").executeTakeFirstOrThrow()).store_id;
  });
  let mark = 0;

  const write = (connection: Kysely<Tables>) =>
    connection
      .updateTable("store_openings")
      .set({ mark: mark + 1 })
      .where("id", "=", opening)
      .execute();

  const durably = async (connection: Kysely<Tables>, work: () => Promise<unknown>) => {
    await sql`pragma synchronous = FULL`.execute(connection);
    try {
      await work();
    } finally {
      await sql`pragma synchronous = NORMAL`.execute(connection);
    }
  };

  return {
    now: () => ({ storeId, opening, mark }),
    async advance() {
      // One connection for the three statements, so that no other transaction comes between.
      await db.connection().execute(async (connection) => {
        if (sqlite) await durably(connection, () => write(connection));
        else await write(connection);
      });
      mark++;
    },
    async reached(asked) {
      const row = await db.selectFrom("store_openings").select("mark").where("id", "=", asked).executeTakeFirst();
      return row?.mark;
    },
    async beside() {
      if (memberId === undefined) return [];
      const rows = await db
        .selectFrom("orchestrators")
        .select("id")
        .where("id", "!=", memberId)
        .where("expires_at", ">", CLOCK)
        .execute();
      return rows.map(({ id }) => id);
    },
  };
}
