/**
 * Moves all records of a SQLite file into an empty PostgreSQL database, in one transaction of the target: they are there as a
 * whole, or not at all. The file stays as it is. A move that was cut is repeated; one that had ended says so.
 */

import { Kysely, sql, type Transaction } from "kysely";
import { AppError } from "../../../shared/http/errors.ts";
import { type AuditChecked, auditStore } from "../audit/audit.ts";
import { openDatabase, openDialect } from "../database.ts";
import type { Database, Tables } from "../tables.ts";
import { differentCounts, rowsAtOnce } from "./plan.ts";
import { openSource, type Row, type Source } from "./source.ts";

export interface Moved {
  /** False: an earlier run had moved them. */
  readonly moved: boolean;
  readonly storeId: string | undefined;
  readonly counts: Readonly<Record<string, number>>;
  /** Of the target, which has the same entries as the source. */
  readonly audit: AuditChecked;
}

type Session = Transaction<Tables>;

/**
 * @param path the SQLite file; refused while an orchestrator has it open
 * @param url the PostgreSQL database; refused when it has records of anything else
 * @throws {AppError} conflict, when either is refused
 */
export async function moveToPostgres(path: string, url: string): Promise<Moved> {
  if (!/^postgres(ql)?:\/\//.test(url)) throw new AppError("bad_request", "the target is no postgresql:// URL");
  const source = openSource(path);
  try {
    const before = await lookAt(url, source);
    const expected = await source.audit();
    const { storeId, counts } = source;
    if (before === "same") {
      const audit = await withPostgres(url, (database) => sameAudit(expected, database));
      return { moved: false, storeId, counts, audit };
    }
    await sameSchema(url, source);
    return { moved: true, storeId, counts, audit: await copyAll(url, source, expected) };
  } finally {
    source.close();
  }
}

/** Before anything is made there: `same` is what an earlier run has left. */
async function lookAt(url: string, source: Source): Promise<"empty" | "same"> {
  return withPostgres(url, async (database) => {
    const tables = await tablesOf(database);
    const counts = await countIn(database, tables);
    const full = Object.keys(counts).filter((name) => counts[name] !== 0);
    if (full.length === 0) return "empty";
    const isOurs =
      tables.includes("store_identity") && source.storeId !== undefined
        ? (await database.selectFrom("store_identity").select("store_id").executeTakeFirst())?.store_id
        : undefined;
    if (isOurs === undefined || isOurs !== source.storeId) {
      throw new AppError("conflict", `the PostgreSQL database has records already: ${some(full, counts)}`);
    }
    const different = differentCounts(source.counts, pick(counts, source.tables));
    if (different.length === 0) return "same";
    throw new AppError(
      "conflict",
      `the PostgreSQL database has this platform's records already, and others than the SQLite file: ${different.join("; ")}`,
    );
  });
}

/** Makes the schema in the target, and compares it with that of the file. */
async function sameSchema(url: string, { steps }: Source): Promise<void> {
  await (await openDatabase(url)).close();
  const made = await withPostgres(url, async (database) => {
    const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(database);
    return rows.map(({ name }) => name);
  });
  const missing = made.filter((name) => !steps.includes(name));
  const newer = steps.filter((name) => !made.includes(name));
  if (newer.length > 0) {
    throw new AppError("conflict", `a newer version has brought the SQLite file to ${newer.at(-1)}: use that version`);
  }
  if (missing.length === 0) return;
  throw new AppError(
    "conflict",
    `the SQLite file is of an earlier version (it lacks ${missing.join(", ")}): start this version's orchestrator on it once, and stop it`,
  );
}

async function copyAll(url: string, source: Source, expected: AuditChecked): Promise<AuditChecked> {
  return withPostgres(url, (database) =>
    database.transaction().execute(async (session) => {
      // Whoever starts on this database meanwhile waits, and then finds the records.
      const names = source.tables.map((name) => sql.table(name));
      await sql`lock table ${sql.join(names)} in access exclusive mode`.execute(session);
      const there = await countIn(session, source.tables);
      const full = Object.keys(there).filter((name) => there[name] !== 0);
      if (full.length > 0) {
        throw new AppError("conflict", `somebody has written into the PostgreSQL database: ${some(full, there)}`);
      }
      for (const table of source.tables) await copyTable(session, source, table);
      const different = differentCounts(source.counts, await countIn(session, source.tables));
      if (different.length > 0) throw new AppError("internal", `not all records arrived: ${different.join("; ")}`);
      return sameAudit(expected, session);
    }),
  );
}

async function copyTable(session: Session, source: Source, table: string): Promise<void> {
  const most = rowsAtOnce(source.columns(table).length);
  let rows: Row[] = [];
  const put = async () => {
    if (rows.length === 0) return;
    try {
      await session
        .insertInto(table as keyof Tables)
        .values(rows)
        .execute();
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new AppError("internal", `PostgreSQL refuses records of ${table}: ${why}`, { cause });
    }
    rows = [];
  };
  for (const row of source.rows(table)) {
    rows.push(row);
    if (rows.length >= most) await put();
  }
  await put();
}

/**
 * A chain that is broken in the file is moved as it is: it is the evidence.
 * @throws {AppError} internal, when the target's is another one
 */
async function sameAudit(expected: AuditChecked, target: Database): Promise<AuditChecked> {
  const checked = await auditStore(target).check();
  if (JSON.stringify(checked) === JSON.stringify(expected)) return checked;
  throw new AppError(
    "internal",
    `the audit log in PostgreSQL is another one: ${JSON.stringify(checked)}, and in SQLite ${JSON.stringify(expected)}`,
  );
}

async function tablesOf(database: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = current_schema() and table_type = 'BASE TABLE' and table_name not like 'kysely_migration%'
    order by 1`.execute(database);
  return rows.map(({ name }) => name);
}

async function countIn(database: Database, tables: readonly string[]): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  for (const name of tables) {
    const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.table(name)}`.execute(database);
    counts[name] = rows[0]?.count ?? 0;
  }
  return counts;
}

function pick(counts: Readonly<Record<string, number>>, names: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(counts).filter(([name]) => names.includes(name)));
}

function some(names: readonly string[], counts: Readonly<Record<string, number>>): string {
  const shown = names.slice(0, 5).map((name) => `${counts[name] ?? 0} in ${name}`);
  return names.length > shown.length ? `${shown.join(", ")} …` : shown.join(", ");
}

async function withPostgres<T>(url: string, work: (database: Database) => Promise<T>): Promise<T> {
  // Without the audit log's part, which would add entries.
  const database = new Kysely<Tables>({ dialect: openDialect(url).dialect });
  try {
    return await work(database);
  } finally {
    await database.destroy();
  }
}
