/** Appends entries to the audit log, within the transaction under way. The only statement that adds one. */

import type { CompiledQuery } from "kysely";
import { compiledLock, locks } from "../locks.ts";
import type { Session } from "../tables.ts";
import { GENESIS, type Head, hashOf } from "./chain.ts";
import type { AuditRow } from "./row.ts";

export type NewEntry = Omit<AuditRow, "seq" | "previous_hash" | "hash">;

/** Runs a statement in the transaction under way. */
type Run = (query: CompiledQuery) => Promise<{ readonly rows: readonly unknown[] }>;

type DatedHead = Head & { readonly at: number };

export interface Appender {
  /** Returns the number of the last entry. Until the transaction ends, no other one appends. */
  append(run: Run, entries: readonly NewEntry[]): Promise<number>;
  /** Read in the transaction, not remembered: a rollback, or another process that writes, can then not fork the chain. */
  head(run: Run): Promise<DatedHead>;
}

/** The statements are compiled once, because compiling one takes longer than running it. */
export function createAppender(builder: Session): Appender {
  const lastRow = builder.selectFrom("audit_log").select(HEAD).orderBy("seq", "desc").limit(1).compile();
  const anchor = builder.selectFrom("audit_anchor").select(HEAD).compile();
  const insertion = builder.insertInto("audit_log").values(EXAMPLE).compile();

  const locking = compiledLock(builder, locks.audit);

  async function head(run: Run): Promise<DatedHead> {
    for (const query of [lastRow, anchor]) {
      const [found] = (await run(query)).rows as readonly DatedHead[];
      if (found !== undefined) return found;
    }
    return { ...GENESIS, at: 0 };
  }

  return {
    head,
    async append(run, entries) {
      if (locking !== undefined) await run(locking);
      let end = await head(run);
      for (const entry of entries) {
        const row = { ...storable(entry), seq: end.seq + 1, at: Math.max(entry.at, end.at), previous_hash: end.hash };
        const chained: AuditRow = { ...row, hash: hashOf(row) };
        await run({ ...insertion, parameters: COLUMNS.map((name) => chained[name]) });
        end = chained;
      }
      return end.seq;
    },
  };
}

/**
 * The entry as both databases give it back: half of a surrogate pair becomes U+FFFD in each, and U+0000 in PostgreSQL. Clients choose
 * ids in paths, and a hash of anything else would not fit the stored row.
 */
function storable(entry: NewEntry): NewEntry {
  const columns = Object.entries(entry).map(([name, value]: [string, unknown]): [string, unknown] => [
    name,
    typeof value === "string" ? Buffer.from(value).toString().replaceAll("\0", "\u{FFFD}") : value,
  ]);
  return Object.fromEntries(columns) as unknown as NewEntry;
}

const HEAD = ["seq", "hash", "at"] as const;

/** Any entry: the statement is compiled from it, with its columns in this order. */
const EXAMPLE: AuditRow = {
  seq: 0,
  at: 0,
  project_id: "",
  actor_kind: "platform",
  actor_id: "",
  actor_mask: "",
  action: "",
  object_kind: "",
  object_id: "",
  result: "done",
  status: 0,
  error_code: "",
  address: "",
  request_id: "",
  refers_to: 0,
  details: "",
  previous_hash: "",
  hash: "",
};
const COLUMNS = Object.keys(EXAMPLE) as readonly (keyof AuditRow)[];
