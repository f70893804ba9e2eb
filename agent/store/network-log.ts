/**
 * Decisions about flows, bounded per sandbox and in all, kept for some hours. Stored by sandbox and not by execution, so
 * that they survive a pause. The only SQL on those tables, apart from migrations.
 */

import type { NetworkLog, NetworkLogEntry } from "../../shared/agent-api/routes.ts";
import { defined } from "../../shared/defined.ts";
import type { Sqlite } from "./database/database.ts";

/** Number of entries above which the oldest are deleted. */
const MAX_ENTRIES_PER_SANDBOX = 5_000;
const MAX_ENTRIES = 500_000;

/** The agent counts these from its start, and counts on when the log drops its oldest entries. */
export interface EgressTotals {
  /** By protocol and verdict; `unlogged`: too many to have an entry each. */
  readonly decisions: ReadonlyMap<string, number>;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

export interface NetworkLogStore {
  /** `suppressed`: number of decisions that are not among the entries. One transaction. */
  add(sandboxId: string, entries: readonly NetworkLogEntry[], suppressed: number): void;
  /**
   * Oldest first, from the cursor (inclusive, unix milliseconds) on; without one the newest. A page from a cursor holds all
   * entries of its last millisecond, even beyond the limit, so the next page begins behind that millisecond.
   */
  read(sandboxId: string, query: { readonly cursor?: number; readonly limit: number }): NetworkLog;
  /** Keys of `decisions` are `PROTOCOL VERDICT`. */
  totals(): EgressTotals;
  /** Deletes entries older than a time, and the oldest beyond the limits. */
  prune(before: number): void;
}

/** Between a rule and the type of records of a question, which have one column; no rule has this character. */
const TYPE_MARK = "\t";

interface Row {
  sandbox_id: string;
  seq: number;
  at: number;
  protocol: NetworkLogEntry["protocol"];
  address: string;
  port: number;
  name: string | null;
  verdict: NetworkLogEntry["verdict"];
  rule: string;
  count: number;
  sent_bytes: number;
  received_bytes: number;
}

export interface NetworkLogLimits {
  readonly perSandbox: number;
  readonly all: number;
}

export function networkLogStore(
  database: Sqlite,
  limits: NetworkLogLimits = { perSandbox: MAX_ENTRIES_PER_SANDBOX, all: MAX_ENTRIES },
): NetworkLogStore {
  const insert = database.prepare<Row>(`insert into network_log values (
    @sandbox_id, @seq, @at, @protocol, @address, @port, @name, @verdict, @rule, @count, @sent_bytes, @received_bytes)`);
  const last = database.prepare<[string], { seq: number | null }>(
    "select max(seq) as seq from network_log where sandbox_id = ?",
  );
  const trim = database.prepare<[string, number]>("delete from network_log where sandbox_id = ? and seq <= ?");
  const suppress = database.prepare<[string, number, number]>(`insert into network_suppressed values (?, ?, ?)
    on conflict do update set count = count + excluded.count, at = excluded.at`);
  const suppressed = database.prepare<[string], { count: number }>(
    "select count from network_suppressed where sandbox_id = ?",
  );
  const newest = database.prepare<[string, number], Row>(
    "select * from network_log where sandbox_id = ? order by seq desc limit ?",
  );
  const lastOfPage = database.prepare<[string, number, number], { at: number }>(
    "select at from network_log where sandbox_id = ? and at >= ? order by at limit 1 offset ?",
  );
  // In order of time: the kernel's decisions are stored a little later than those of the egress process.
  const between = database.prepare<[string, number, number], Row>(
    "select * from network_log where sandbox_id = ? and at between ? and ? order by at, seq",
  );
  const pruneEntries = database.prepare<[number]>("delete from network_log where at < ?");
  const pruneSuppressed = database.prepare<[number]>("delete from network_suppressed where at < ?");
  const surplus = database.prepare<[number], { at: number }>(
    "select at from network_log order by at desc limit 1 offset ?",
  );

  const decisions = new Map<string, number>();
  const bytes = { sentBytes: 0, receivedBytes: 0 };
  const countUp = (protocol: string, verdict: string, more: number) => {
    const key = `${protocol} ${verdict}`;
    decisions.set(key, (decisions.get(key) ?? 0) + more);
  };
  const addUp = (entries: readonly NetworkLogEntry[], unlogged: number) => {
    for (const entry of entries) {
      countUp(entry.protocol, entry.verdict, entry.count);
      bytes.sentBytes += entry.sentBytes;
      bytes.receivedBytes += entry.receivedBytes;
    }
    if (unlogged > 0) countUp("any", "unlogged", unlogged);
  };
  const write = database.transaction((sandboxId: string, entries: readonly NetworkLogEntry[], more: number) => {
    let seq = last.get(sandboxId)?.seq ?? 0;
    for (const entry of entries) {
      const { at, protocol, address, port, name, recordType, verdict, count, sentBytes, receivedBytes } = entry;
      const rule = recordType === undefined ? entry.rule : `${entry.rule}${TYPE_MARK}${recordType}`;
      seq++;
      insert.run({
        sandbox_id: sandboxId,
        seq,
        at,
        protocol,
        address,
        port,
        name: name ?? null,
        verdict,
        rule,
        count,
        sent_bytes: sentBytes,
        received_bytes: receivedBytes,
      });
    }
    trim.run(sandboxId, seq - limits.perSandbox);
    if (more > 0) suppress.run(sandboxId, more, entries.at(-1)?.at ?? Date.now());
  });

  return {
    add(sandboxId, entries, suppressed) {
      write(sandboxId, entries, suppressed);
      addUp(entries, suppressed);
    },
    totals: () => ({ decisions, ...bytes }),
    read(sandboxId, { cursor, limit }) {
      const to = () => lastOfPage.get(sandboxId, cursor ?? 0, limit - 1)?.at ?? Number.MAX_SAFE_INTEGER;
      const rows =
        cursor === undefined ? newest.all(sandboxId, limit).toReversed() : between.all(sandboxId, cursor, to());
      return {
        entries: rows.map(toEntry).toSorted((a, b) => a.at - b.at),
        suppressed: suppressed.get(sandboxId)?.count ?? 0,
      };
    },
    prune: database.transaction((before: number) => {
      const tooOld = surplus.get(limits.all)?.at;
      pruneEntries.run(tooOld === undefined ? before : Math.max(before, tooOld + 1));
      pruneSuppressed.run(before);
    }),
  };
}

function toEntry(row: Row): NetworkLogEntry {
  const [rule = "", recordType] = row.rule.split(TYPE_MARK, 2);
  return {
    at: row.at,
    protocol: row.protocol,
    address: row.address,
    port: row.port,
    ...defined({ name: row.name ?? undefined }),
    ...defined({ recordType }),
    verdict: row.verdict,
    rule,
    count: row.count,
    sentBytes: row.sent_bytes,
    receivedBytes: row.received_bytes,
  };
}
