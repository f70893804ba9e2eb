/** Log entries, bounded per sandbox and in all, kept for some hours. The only SQL on that table, apart from migrations. */

import { LOG_LEVELS, type LogEntry } from "../../shared/agent-api/sandbox-log.ts";
import type { Sqlite } from "./database/database.ts";

/** Number of entries above which the oldest are deleted. */
const MAX_ENTRIES_PER_SANDBOX = 5_000;
const MAX_ENTRIES = 500_000;

export interface StoredEntry {
  /** envd's number of the line: reading the same line twice changes nothing. */
  readonly seq: number;
  /** Unix milliseconds. */
  readonly at: number;
  readonly level: LogEntry["level"];
  readonly message: string;
  readonly fields: Readonly<Record<string, string>>;
}

export interface LogQuery {
  /** Inclusive, unix milliseconds. */
  readonly cursor?: number;
  readonly limit: number;
  readonly direction: "forward" | "backward";
  /** The least severe level to return. */
  readonly level?: LogEntry["level"];
  readonly search?: string;
}

export interface LogStore {
  add(executionId: string, entries: readonly StoredEntry[]): void;
  /** The `after` of the next read. */
  lastSeq(executionId: string): number;
  read(executionId: string, query: LogQuery): LogEntry[];
  /** Deletes entries older than a time, and the oldest beyond the limit of all. */
  prune(before: number): void;
}

interface Row {
  execution_id: string;
  seq: number;
  at: number;
  level: number;
  message: string;
  fields: string;
}

interface Bounds {
  id: string;
  from: number;
  to: number;
  level: number;
  search: string;
  limit: number;
}

export function logStore(database: Sqlite, mostEntries = MAX_ENTRIES): LogStore {
  const insert = database.prepare<Row>(
    "insert into logs values (@execution_id, @seq, @at, @level, @message, @fields) on conflict do nothing",
  );
  const trim = database.prepare<[string, string, number]>(
    "delete from logs where execution_id = ? and seq <= (select max(seq) from logs where execution_id = ?) - ?",
  );
  const last = database.prepare<[string], { seq: number | null }>(
    "select max(seq) as seq from logs where execution_id = ?",
  );
  const where = `from logs where execution_id = @id and at between @from and @to and level >= @level
    and (@search = '' or instr(message, @search) > 0)`;
  const forward = database.prepare<Bounds, Row>(`select * ${where} order by at, seq limit @limit`);
  const backward = database.prepare<Bounds, Row>(`select * ${where} order by at desc, seq desc limit @limit`);
  const prune = database.prepare<[number]>("delete from logs where at < ?");
  const surplus = database.prepare<[number], { at: number }>("select at from logs order by at desc limit 1 offset ?");

  return {
    add: database.transaction((executionId: string, entries: readonly StoredEntry[]) => {
      for (const { seq, at, level, message, fields } of entries) {
        insert.run({
          execution_id: executionId,
          seq,
          at,
          level: LOG_LEVELS.indexOf(level),
          message,
          fields: JSON.stringify(fields),
        });
      }
      trim.run(executionId, executionId, MAX_ENTRIES_PER_SANDBOX);
    }),
    lastSeq: (executionId) => last.get(executionId)?.seq ?? 0,
    read(executionId, { cursor, limit, direction, level, search }) {
      const isForward = direction === "forward";
      const bounds: Bounds = {
        id: executionId,
        from: isForward ? (cursor ?? 0) : 0,
        to: isForward ? Number.MAX_SAFE_INTEGER : (cursor ?? Number.MAX_SAFE_INTEGER),
        level: level === undefined ? 0 : LOG_LEVELS.indexOf(level),
        search: search ?? "",
        limit,
      };
      return (isForward ? forward : backward).all(bounds).map(toEntry);
    },
    prune: database.transaction((before: number) => {
      const tooOld = surplus.get(mostEntries)?.at;
      prune.run(tooOld === undefined ? before : Math.max(before, tooOld + 1));
    }),
  };
}

function toEntry({ at, level, message, fields }: Row): LogEntry {
  return {
    timestamp: new Date(at).toISOString(),
    level: LOG_LEVELS[level] ?? "info",
    message,
    fields: JSON.parse(fields) as Record<string, string>,
  };
}
