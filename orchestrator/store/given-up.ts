/**
 * What was given up, by its id: executions and snapshots that a node was asked to hold, and volumes that were never made. A
 * node may report it again to any orchestrator, long afterwards. The only SQL on this table.
 */

import type { Database, Session } from "./tables.ts";

/** Longer than a node keeps what it holds. */
const KEPT_MS = 90 * 86_400_000;

/** False: it was noted before. */
export async function noteGivenUp(session: Session, id: string, at: number): Promise<boolean> {
  await session
    .deleteFrom("given_up")
    .where("at", "<", at - KEPT_MS)
    .execute();
  const row = await session
    .insertInto("given_up")
    .values({ id, at })
    .onConflict((conflict) => conflict.column("id").doNothing())
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}

/** Those of these that were given up. */
export async function givenUpAmong(db: Database, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const rows = await db.selectFrom("given_up").select("id").where("id", "in", ids).execute();
  return new Set(rows.map(({ id }) => id));
}
