/** The audit log: entries without a change of their own, pages, the check of the chain, deletion by age. */

import type { CompiledQuery, ExpressionBuilder, Transaction } from "kysely";
import { type Caller, currentCaller } from "../../callers/caller.ts";
import { lock, locks } from "../locks.ts";
import type { Database, Session, Tables } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { createAppender, type NewEntry } from "./append.ts";
import { type Break, breakAt, GENESIS, type Head } from "./chain.ts";
import type { AuditActor, AuditResult, AuditRow } from "./row.ts";
import { recordsItself, runUnaudited } from "./scope.ts";

export interface AuditFilter {
  readonly projectId?: string;
  readonly actorKind?: AuditActor;
  readonly actorId?: string;
  readonly action?: string;
  readonly objectId?: string;
  readonly objectKind?: string;
  readonly result?: AuditResult;
  readonly requestId?: string;
  /** Unix milliseconds, both included. */
  readonly from?: number;
  readonly to?: number;
}

export interface AuditPage {
  readonly ascending: boolean;
  readonly limit: number;
  /** The position after which the page begins: an entry's number, which need not exist any more. */
  readonly after?: number;
}

export interface AuditChecked {
  readonly entries: number;
  /** The chain begins after it: the start of the log, or the last entry that was deleted because of its age. */
  readonly anchor: Head;
  readonly head: Head;
  readonly broken?: Break;
}

/** The conditions that have no index. */
function matches(where: ExpressionBuilder<{ readonly scanned: AuditRow }, "scanned">, filter: AuditFilter) {
  const wanted = {
    actor_kind: filter.actorKind,
    actor_id: filter.actorId,
    action: filter.action,
    object_kind: filter.objectKind,
    result: filter.result,
  };
  return where.and(Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined)));
}

interface CheckOptions {
  readonly known?: Head;
  readonly signal?: AbortSignal;
}

export type AuditStore = ReturnType<typeof auditStore>;

const SCANNED = 5000;
/** Entries that the check holds in memory. */
const CHECKED_AT_ONCE = 1000;

/** @param scanned entries that one page reads at most: of a filter that few entries match, pages are short */
export function auditStore(db: Database, scanned = SCANNED) {
  const appender = createAppender(db);
  const runIn = (session: Session) => (query: CompiledQuery) => session.executeQuery(query);

  /**
   * Adds an entry in the transaction of a change that is not a request's own: work of the platform, or work for a node,
   * which is the actor then.
   */
  async function note(session: Transaction<Tables>, noted: Noted): Promise<void> {
    await appender.append(runIn(session), [toEntry(noted, currentCaller())]);
  }

  return {
    note,

    /** As `note`, unless the change belongs to a request that records itself. */
    async noteUnlessRequested(session: Transaction<Tables>, noted: Noted): Promise<void> {
      if (!recordsItself()) await note(session, noted);
    },

    /** Adds entries whose requests changed nothing, or ended after their change. */
    async addAll(entries: readonly NewEntry[]): Promise<void> {
      // The end of a request's part is written while the request goes on, and is not its change.
      await runUnaudited(() => inTransaction(db, (session) => appender.append(runIn(session), entries)));
    },

    async head(): Promise<Head> {
      const { seq, hash } = await appender.head(runIn(db));
      return { seq, hash };
    },

    /** Of an entry, or of the anchor. Undefined: retention has deleted the entry, or it is missing. */
    async hashAt(seq: number): Promise<string | undefined> {
      const row = await db.selectFrom("audit_log").select("hash").where("seq", "=", seq).executeTakeFirst();
      if (row !== undefined) return row.hash;
      const anchor = await anchorOf(db);
      return anchor.seq === seq ? anchor.hash : undefined;
    },

    /** `next`: where the next page begins; undefined at the end. */
    async list(
      filter: AuditFilter,
      { ascending, limit, after }: AuditPage,
    ): Promise<{ readonly rows: AuditRow[]; readonly next?: number }> {
      const order = ascending ? "asc" : "desc";
      let scan = db.selectFrom("audit_log").selectAll().orderBy("seq", order).limit(scanned);
      if (after !== undefined) scan = scan.where("seq", ascending ? ">" : "<", after);
      if (filter.projectId !== undefined) scan = scan.where("project_id", "=", filter.projectId);
      if (filter.objectId !== undefined) scan = scan.where("object_id", "=", filter.objectId);
      if (filter.requestId !== undefined) scan = scan.where("request_id", "=", filter.requestId);
      // Times never decrease, so a bound of the time is a bound of the number.
      if (filter.from !== undefined) scan = scan.where("seq", ">=", await this.firstSince(filter.from));
      if (filter.to !== undefined) scan = scan.where("seq", "<", await this.firstSince(filter.to + 1));
      const rows = await db
        .selectFrom(scan.as("scanned"))
        .selectAll()
        .where((where) => matches(where, filter))
        .orderBy("seq", order)
        .limit(limit + 1)
        .execute();
      const page = rows.slice(0, limit);
      if (rows.length > limit) return { rows: page, next: page.at(-1)?.seq ?? 0 };
      const last = await scan
        .clearSelect()
        .select("seq")
        .clearLimit()
        .limit(1)
        .offset(scanned - 1)
        .executeTakeFirst();
      return last === undefined ? { rows: page } : { rows: page, next: last.seq };
    },

    /**
     * The number of the first entry that is not older, or the one after the last. Times never decrease, so it is found in
     * halves, without an index.
     */
    async firstSince(at: number): Promise<number> {
      let low = (await anchorOf(db)).seq + 1;
      let high = (await appender.head(runIn(db))).seq + 1;
      while (low < high) {
        const middle = Math.floor((low + high) / 2);
        const row = await db.selectFrom("audit_log").select("at").where("seq", "=", middle).executeTakeFirst();
        // An entry that is missing is older than retention, or the log is damaged.
        if (row === undefined || row.at < at) low = middle + 1;
        else high = middle;
      }
      return low;
    },

    /**
     * Reads the whole chain in pieces. Entries that are added or deleted meanwhile do not disturb it.
     * @param known an entry's number and hash as noted elsewhere, which the chain must contain unless it begins later
     */
    async check({ known, signal }: CheckOptions = {}): Promise<AuditChecked> {
      let anchor = await anchorOf(db);
      let head: Head = anchor;
      let entries = 0;
      const differs = () => known?.seq === head.seq && known.hash !== head.hash;
      for (;;) {
        if (differs()) return { entries, anchor, head, broken: { seq: head.seq, fault: "replaced" } };
        signal?.throwIfAborted();
        const rows = await db
          .selectFrom("audit_log")
          .selectAll()
          .where("seq", ">", head.seq)
          .orderBy("seq")
          .limit(CHECKED_AT_ONCE)
          .execute();
        const now = await anchorOf(db);
        if (now.seq > head.seq) {
          // Retention has deleted what this was about to read.
          anchor = now;
          head = now;
          entries = 0;
          continue;
        }
        for (const row of rows) {
          const broken = breakAt(head, row);
          if (broken !== undefined) return { entries, anchor, head, broken };
          head = { seq: row.seq, hash: row.hash };
          if (differs()) return { entries, anchor, head, broken: { seq: head.seq, fault: "replaced" } };
          entries++;
        }
        if (rows.length === CHECKED_AT_ONCE) continue;
        const cut = known !== undefined && known.seq > head.seq;
        return { entries, anchor, head, ...(cut ? { broken: { seq: head.seq + 1, fault: "missing" } } : {}) };
      }
    },

    /** Deletes at most `limit` of the oldest entries from before a time, and keeps the hash of the last one. */
    async forget(before: number, { limit, now }: { readonly limit: number; readonly now: number }): Promise<number> {
      return inTransaction(db, async (session) => {
        // A second process that deletes would set the anchor back.
        await lock(session, locks.audit);
        const oldest = await session
          .selectFrom("audit_log")
          .select(["seq", "hash", "at"])
          .orderBy("seq")
          .limit(limit)
          .execute();
        const old = oldest.filter((row) => row.at < before);
        const last = old.at(-1);
        if (last === undefined) return 0;
        await session.deleteFrom("audit_log").where("seq", "<=", last.seq).execute();
        const anchor = { seq: last.seq, hash: last.hash, at: now };
        await session
          .insertInto("audit_anchor")
          .values({ id: 1, ...anchor })
          .onConflict((conflict) => conflict.column("id").doUpdateSet(anchor))
          .execute();
        return old.length;
      });
    },
  };
}

/** What happened, for an entry that is not a request's own. */
interface Noted {
  /** Unix milliseconds. */
  readonly at: number;
  readonly action: string;
  readonly projectId: string | undefined;
  readonly object: { readonly kind: string; readonly id: string };
  /** Names and reasons only: everybody who may read the log reads them. */
  readonly details?: Readonly<Record<string, string | number | boolean>>;
}

function toEntry({ at, action, projectId, object, details }: Noted, caller: Caller | undefined): NewEntry {
  const node = caller?.kind === "node" ? caller : undefined;
  return {
    at,
    project_id: projectId ?? null,
    actor_kind: node === undefined ? "platform" : "node",
    actor_id: node?.nodeId ?? null,
    actor_mask: null,
    action,
    object_kind: object.kind,
    object_id: object.id,
    result: "done",
    status: null,
    error_code: null,
    address: node?.address ?? null,
    request_id: node?.requestId ?? null,
    refers_to: null,
    details: details === undefined ? null : JSON.stringify(details),
  };
}

async function anchorOf(db: Session): Promise<Head> {
  return (await db.selectFrom("audit_anchor").select(["seq", "hash"]).executeTakeFirst()) ?? GENESIS;
}
