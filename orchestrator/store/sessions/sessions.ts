/** The only SQL on the console's sessions. Nothing caches a session, so its end is the end of its row, at every orchestrator. */

import { concernsRow } from "../audit/scope.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type SessionRecord, sessionTable } from "./record.ts";

/** Sessions that nobody uses for so long end. */
const IDLE_MS = 12 * 3_600_000;
/** Sessions of one key, and links of it: a log-in is no request that a limit of calls counts. */
const MOST_OF_KEY = 1_000;
/** Sessions of people that are listed. */
const MOST_PEOPLE = 1_000;
/** Shortest time between two writes of a session's last use. */
const WRITE_EVERY_MS = 60_000;

export type SessionStore = ReturnType<typeof sessionStore>;

type NewSession = Pick<SessionRecord, "hash" | "kind"> &
  Partial<Pick<SessionRecord, "keyId" | "adminDigest" | "person">> & {
    /** Milliseconds from now. */
    readonly lifeMs: number;
  };

export function sessionStore(db: Database, now: () => number) {
  return {
    /** Also deletes every session that has ended, and the oldest of a key that has more than the most. */
    async create({ lifeMs, ...made }: NewSession): Promise<SessionRecord> {
      const at = now();
      concernsRow("console_sessions", nameOf(made.hash));
      const of = { keyId: undefined, adminDigest: undefined, person: undefined };
      const row = sessionTable.toRow({ ...of, ...made, createdAt: at, usedAt: at, expiresAt: at + lifeMs });
      await inTransaction(db, async (session) => {
        await session
          .deleteFrom("console_sessions")
          .where((where) => where.or([where("expires_at", "<=", at), where("used_at", "<=", at - IDLE_MS)]))
          .execute();
        if (made.keyId !== undefined) await makeRoom(session, made.kind, made.keyId);
        await session.insertInto("console_sessions").values(row).execute();
      });
      return sessionTable.toRecord(row);
    },

    /**
     * The session with this hash, if it has not ended.
     * @param isUse notes that somebody uses it
     */
    async read(hash: string, isUse: boolean): Promise<SessionRecord | undefined> {
      const at = now();
      const row = await db
        .selectFrom("console_sessions")
        .selectAll()
        .where("hash", "=", hash)
        .where("kind", "<>", "link")
        .where("expires_at", ">", at)
        .where("used_at", ">", at - IDLE_MS)
        .executeTakeFirst();
      if (row === undefined) return undefined;
      if (isUse && at - row.used_at >= WRITE_EVERY_MS) {
        await db.updateTable("console_sessions").set({ used_at: at }).where("hash", "=", hash).execute();
      }
      return sessionTable.toRecord(row);
    },

    /** Sessions of people that have not ended, the last used ones first. */
    async people(): Promise<SessionRecord[]> {
      const at = now();
      const rows = await db
        .selectFrom("console_sessions")
        .selectAll()
        .where("kind", "=", "person")
        .where("expires_at", ">", at)
        .where("used_at", ">", at - IDLE_MS)
        .orderBy("used_at", "desc")
        .limit(MOST_PEOPLE)
        .execute();
      return rows.map((row) => sessionTable.toRecord(row));
    },

    /** The id of the key that a link logs in with; the link stays. */
    async keyOfLink(hash: string): Promise<string | undefined> {
      const row = await db
        .selectFrom("console_sessions")
        .select("key_id")
        .where("hash", "=", hash)
        .where("kind", "=", "link")
        .where("expires_at", ">", now())
        .executeTakeFirst();
      return row?.key_id ?? undefined;
    },

    /** Takes a link's code, which works once: of several requests with it one gets the key's id. */
    async takeLink(hash: string): Promise<string | undefined> {
      const row = await db
        .deleteFrom("console_sessions")
        .where("hash", "=", hash)
        .where("kind", "=", "link")
        .where("expires_at", ">", now())
        .returning("key_id")
        .executeTakeFirst();
      return row?.key_id ?? undefined;
    },

    async delete(hash: string): Promise<void> {
      concernsRow("console_sessions", nameOf(hash));
      await db.deleteFrom("console_sessions").where("hash", "=", hash).execute();
    },
  };
}

/** A name for the audit log, by which a log-out is that of a log-in. It finds no session: part of a hash is no hash. */
function nameOf(hash: string): string {
  return Buffer.from(hash, "base64").toString("hex").slice(0, 16);
}

/** Leaves room for one more. */
async function makeRoom(session: Session, kind: SessionRecord["kind"], keyId: string): Promise<void> {
  const beyond = await session
    .selectFrom("console_sessions")
    .select("hash")
    .where("key_id", "=", keyId)
    .where("kind", "=", kind)
    .orderBy("created_at", "desc")
    .orderBy("hash")
    .offset(MOST_OF_KEY - 1)
    .limit(MOST_OF_KEY)
    .execute();
  const hashes = beyond.map(({ hash }) => hash);
  if (hashes.length > 0) await session.deleteFrom("console_sessions").where("hash", "in", hashes).execute();
}
