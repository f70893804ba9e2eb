/**
 * Finds sandboxes whose end has passed. Where several orchestrators look, each of them claims what it finds: whoever looks
 * meanwhile skips it, and finds it again only when the claimer has not ended it after a while.
 */

import { sql } from "kysely";
import { CLOCK } from "../membership/clock.ts";
import type { Database } from "../tables.ts";
import type { SandboxRow } from "./record.ts";

export interface ExpiredWanted {
  /** Unix milliseconds. */
  readonly now: number;
  /** How many more the caller can end. */
  readonly free: number;
  /** How many it knows that are in the answer for a while yet: it ends them, or has failed to. */
  readonly known: number;
}

/** For a claimer to move the sandbox out of `running`, which other orchestrators see as well. */
const CLAIM_MS = 10_000;

/** For the only process on its database. Includes those that the caller knows. */
export function expired(db: Database, { now, free, known }: ExpiredWanted): Promise<SandboxRow[]> {
  return db
    .selectFrom("sandboxes")
    .selectAll()
    .where("state", "=", "running")
    .where("end_at", "<=", now)
    .orderBy("end_at")
    .limit(free + known)
    .execute();
}

/**
 * The clock was set by so much: what is to happen to sandboxes that live happens as much later by it. Returns how many there are. For
 * the only process on its database.
 */
export async function moveEnds(db: Database, ms: number): Promise<number> {
  const result = await db
    .updateTable("sandboxes")
    .set({
      end_at: sql<number>`end_at + ${ms}`,
      // 0: nobody works on the sandbox.
      deadline_at: sql<number>`case when deadline_at = 0 then 0 else deadline_at + ${ms} end`,
    })
    // A kill has set the end to the time at which it began.
    .where("state", "in", ["starting", "running", "pausing", "snapshotting", "rewinding"])
    .executeTakeFirst();
  return Number(result.numUpdatedRows);
}

/** PostgreSQL only. A claim is for one end: a sandbox whose end was moved meanwhile is found at its new one. */
export async function claimExpired(db: Database, { now, free }: ExpiredWanted): Promise<SandboxRow[]> {
  const claimed = await db
    .with("due", (from) =>
      from
        .selectFrom("sandboxes")
        .select("id")
        .where("state", "=", "running")
        .where("end_at", "<=", now)
        .where((where) =>
          where.or([
            where("expiring_until", "is", null),
            where("expiring_until", "<=", CLOCK),
            where("expiring_end_at", "!=", where.ref("end_at")),
          ]),
        )
        .orderBy("end_at")
        .limit(free)
        .forUpdate()
        .skipLocked(),
    )
    .updateTable("sandboxes")
    .set((update) => ({ expiring_end_at: update.ref("end_at"), expiring_until: sql<number>`${CLOCK} + ${CLAIM_MS}` }))
    .where("id", "in", (from) => from.selectFrom("due").select("due.id"))
    .returningAll()
    .execute();
  return claimed.sort((one, other) => one.end_at - other.end_at);
}
