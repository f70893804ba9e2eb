/** The SQLite file that records are moved from: held for this process alone, and read. No row of it is changed. */

import { existsSync } from "node:fs";
import SQLite from "better-sqlite3";
import { Kysely, SqliteDialect } from "kysely";
import { AppError } from "../../../shared/http/errors.ts";
import { type AuditChecked, auditStore } from "../audit/audit.ts";
import type { Tables } from "../tables.ts";
import { copyOrder } from "./plan.ts";

export type Row = Readonly<Record<string, unknown>>;

export interface Source {
  /** Steps of the schema that are in force. */
  readonly steps: readonly string[];
  /** Every table with records of the platform, each after those that its rows name. */
  readonly tables: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  /** Undefined: no orchestrator has ever started on it. */
  readonly storeId: string | undefined;
  columns(table: string): readonly string[];
  rows(table: string): Iterable<Row>;
  /** Reads the whole chain of the audit log. */
  audit(): Promise<AuditChecked>;
  close(): void;
}

/** The migrator's own: the target has them with the schema. */
const OF_MIGRATOR = /^kysely_migration/;

/** @throws {AppError} not_found, or conflict while another process has the file open */
export function openSource(path: string): Source {
  // SQLite would make a new file.
  if (!existsSync(path)) throw new AppError("not_found", `no database at '${path}'`);
  const database = new SQLite(path, { timeout: 1_000 });
  try {
    hold(database, path);
    const integrity = String(database.pragma("quick_check(1)", { simple: true }));
    if (integrity !== "ok") throw new AppError("internal", `the database '${path}' is damaged: ${integrity}`);
    return read(database);
  } catch (error) {
    database.close();
    throw error;
  }
}

/** In this mode SQLite gets the file only while nobody else has it open, and nobody else gets it until it is closed. */
function hold(database: SQLite.Database, path: string): void {
  try {
    database.pragma("locking_mode = EXCLUSIVE");
    database.exec("begin immediate; commit");
  } catch (error) {
    if (!(error instanceof SQLite.SqliteError) || !error.code.startsWith("SQLITE_BUSY")) throw error;
    throw new AppError("conflict", `an orchestrator, or another program, has '${path}' open: stop it first`);
  }
}

function read(database: SQLite.Database): Source {
  const names = database
    .prepare("select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name")
    .pluck()
    .all() as readonly string[];
  const all = names.filter((name) => !OF_MIGRATOR.test(name));
  const value = (statement: string) => database.prepare(statement).pluck().get();
  const tables = copyOrder(
    all.map((name) => ({
      name,
      references: (database.pragma(`foreign_key_list("${name}")`) as readonly { readonly table: string }[]).map(
        ({ table }) => table,
      ),
    })),
  );
  const steps = names.includes("kysely_migration")
    ? (database.prepare("select name from kysely_migration order by name").pluck().all() as readonly string[])
    : [];
  const storeId = all.includes("store_identity") ? value("select store_id from store_identity") : undefined;
  return {
    steps,
    tables,
    counts: Object.fromEntries(all.map((name) => [name, value(`select count(*) from "${name}"`) as number])),
    storeId: typeof storeId === "string" ? storeId : undefined,
    columns: (table) =>
      (database.pragma(`table_info("${table}")`) as readonly { readonly name: string }[]).map(({ name }) => name),
    rows: (table) => database.prepare(`select * from "${table}"`).iterate() as Iterable<Row>,
    // On the one connection that has the file.
    audit: () => auditStore(new Kysely<Tables>({ dialect: new SqliteDialect({ database }) })).check(),
    close: () => void database.close(),
  };
}
