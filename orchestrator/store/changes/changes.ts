/**
 * What orchestrators tell each other about their memories: a row for each change that others must see, in the transaction
 * that makes it. Readers go on from the oldest transaction that was under way at their last look, since transactions do not
 * commit in the order of their numbers. Rows are kept for an hour.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { newUuid } from "../../../shared/ids.ts";
import { CLOCK } from "../membership/clock.ts";
import type { Member } from "../membership/record.ts";
import { announce } from "../postgres/news.ts";
import type { Database, Session } from "../tables.ts";
import { afterCommit, inTransaction } from "../transactions.ts";
import type { Kind } from "./record.ts";

export interface Change {
  readonly id: string;
  readonly kind: Kind;
  readonly subject: string;
}

export interface Changes {
  /** Within the transaction of the change, which `inTransaction` runs. */
  note(session: Session, kind: Kind, subject: string): Promise<void>;
  /** As `inTransaction`, and resolves when no other orchestrator uses what it knew of the subjects that `work` noted. */
  throughout<T>(work: (session: Session) => Promise<T>): Promise<T>;
}

export interface ChangeLog extends Changes {
  /** @param since what the last look returned; undefined: from now on */
  read(since: number | undefined): Promise<{ readonly changes: readonly Change[]; readonly next: number }>;
  /** This process has forgotten what it knew. */
  confirm(ids: readonly string[]): Promise<void>;
  /** Deletes the rows that everybody has read. */
  forget(): Promise<void>;
}

/** The channel that wakes readers. */
export const CHANNEL = "svc_changes";
/** A reader that has not looked for so long uses nothing from its memory. */
export const TRUST_MS = 2_500;
/** Beyond that, for the look under way. */
const LONGEST_WAIT_MS = 2 * TRUST_MS;
const LOOK_MS = 10;
export const KEPT_MS = 3_600_000;

/** For the only process on its database: nobody else remembers anything. */
export function noChanges(db: Database): Changes {
  return {
    note: () => Promise.resolve(),
    throughout: (work) => inTransaction(db, work),
  };
}

export function changeLog(db: Database, self: () => Member | undefined): ChangeLog {
  const state = { announcing: false, again: false };
  /** The notes of transactions that wait for their receipts. */
  const noted = new WeakMap<Session, string[]>();

  /** One announcement at a time stands for all changes until then. It carries nothing, and readers look by themselves too. */
  async function wakeReaders(): Promise<void> {
    state.again = true;
    if (state.announcing) return;
    state.announcing = true;
    try {
      while (state.again) {
        state.again = false;
        await announce(db, CHANNEL, "");
      }
    } catch {
      // They look within a second.
    } finally {
      state.announcing = false;
    }
  }

  async function missing(ids: readonly string[]): Promise<boolean> {
    const row = await db
      .selectFrom("orchestrators")
      .innerJoin("changes", (join) => join.onTrue())
      .select("orchestrators.id")
      .where("orchestrators.expires_at", ">", CLOCK)
      .where("orchestrators.id", "!=", self()?.id ?? "")
      .where("changes.id", "in", ids)
      .where((where) =>
        where.not(
          where.exists(
            where
              .selectFrom("change_receipts")
              .select("change_id")
              .whereRef("change_receipts.change_id", "=", "changes.id")
              .whereRef("change_receipts.member_id", "=", "orchestrators.id"),
          ),
        ),
      )
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  }

  return {
    async note(session, kind, subject) {
      const id = newUuid();
      await session
        .insertInto("changes")
        .values({
          id,
          kind,
          subject,
          origin: self()?.id ?? "",
          at: CLOCK,
          txid: sql<number>`pg_current_xact_id()::text::bigint`,
        })
        .execute();
      noted.get(session)?.push(id);
      afterCommit(session, () => void wakeReaders());
    },

    async throughout(work) {
      let ids: string[] = [];
      const result = await inTransaction(db, (session) => {
        ids = [];
        noted.set(session, ids);
        return work(session);
      });
      const until = performance.now() + LONGEST_WAIT_MS;
      while (ids.length > 0 && performance.now() < until && (await missing(ids))) await sleep(LOOK_MS);
      return result;
    },

    async read(since) {
      const rows = await db
        .selectNoFrom(sql<number>`pg_snapshot_xmin(pg_current_snapshot())::text::bigint`.as("next"))
        .execute();
      const next = rows[0]?.next ?? 0;
      if (since === undefined) return { changes: [], next };
      const changes = await db
        .selectFrom("changes")
        .select(["id", "kind", "subject"])
        .where("txid", ">=", since)
        .where("origin", "!=", self()?.id ?? "")
        .orderBy("txid")
        .execute();
      return { changes, next };
    },

    async confirm(ids) {
      const member = self();
      if (member === undefined || ids.length === 0) return;
      await db
        .insertInto("change_receipts")
        .columns(["change_id", "member_id"])
        .expression((from) =>
          from
            .selectFrom("changes")
            .select(["changes.id", sql<string>`${member.id}`.as("member_id")])
            .where("changes.id", "in", ids),
        )
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    },

    async forget() {
      await db.deleteFrom("changes").where("at", "<", sql<number>`${CLOCK} - ${KEPT_MS}`).execute();
    },
  };
}
