/** Copies of a database that an orchestrator uses meanwhile, and the number of its records, for `svc backup`. Changes nothing in it. */

import { existsSync } from "node:fs";
import SQLite from "better-sqlite3";
import { Kysely, sql } from "kysely";
import { AppError } from "../../shared/http/errors.ts";
import { openPostgres } from "./postgres/postgres.ts";

/**
 * Writes all records as of one moment into a new SQLite file; writers go on. PostgreSQL has a program of its own for that.
 * @throws when the file is there already
 */
export function copySqlite(path: string, copy: string): void {
  withSqlite(path, (database) => {
    if (existsSync(copy)) throw new AppError("conflict", `there is a file ${copy} already`);
    // One read transaction: it ends, however much is written meanwhile.
    database.prepare("vacuum into ?").run(copy);
  });
}

/** How many records each table has, and what the database says of its own integrity. */
export async function countRecords(place: string): Promise<{
  readonly integrity: string;
  readonly counts: Readonly<Record<string, number>>;
}> {
  if (/^postgres(ql)?:\/\//.test(place)) return { integrity: "ok", counts: await countPostgres(place) };
  return withSqlite(place, (database) => {
    const integrity = String(database.pragma("quick_check(1)", { simple: true }));
    const tables = database
      .prepare("select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name")
      .pluck()
      .all() as string[];
    // One transaction: the numbers are of one moment.
    const counts = database.transaction(() =>
      tables.map((table) => [table, database.prepare(`select count(*) from "${table}"`).pluck().get() as number]),
    );
    return { integrity, counts: Object.fromEntries(counts()) as Record<string, number> };
  });
}

function withSqlite<T>(path: string, work: (database: SQLite.Database) => T): T {
  // SQLite would make a new file.
  if (!existsSync(path)) throw new AppError("not_found", `no database at '${path}'`);
  const database = new SQLite(path, { readonly: true, timeout: 30_000 });
  try {
    return work(database);
  } finally {
    database.close();
  }
}

async function countPostgres(place: string): Promise<Readonly<Record<string, number>>> {
  const database = new Kysely<Record<string, never>>({ dialect: openPostgres(place).dialect });
  try {
    const tables = await sql<{ name: string }>`
      select table_name as name from information_schema.tables
      where table_schema = current_schema() and table_type = 'BASE TABLE' order by 1`.execute(database);
    const counts: Record<string, number> = {};
    for (const { name } of tables.rows) {
      const found = await sql<{ count: string }>`select count(*) as count from ${sql.table(name)}`.execute(database);
      counts[name] = Number(found.rows[0]?.count ?? 0);
    }
    return counts;
  } finally {
    await database.destroy();
  }
}
