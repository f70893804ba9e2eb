/**
 * The database of one test: a SQLite file, or with SVC_TEST_POSTGRES a database on that server. It is removed after the test.
 */

import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { copyFile, mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import SQLite from "better-sqlite3";
import { HandleEmptyInListsPlugin, Kysely, replaceWithNoncontingentExpression, sql } from "kysely";
import { Client } from "pg";
import { auditedDialect } from "../../../orchestrator/store/audit/dialect.ts";
import { type OpenedDatabase, openDatabase, openDialect } from "../../../orchestrator/store/database.ts";
import { noBallast } from "../../../orchestrator/store/sqlite/ballast.ts";
import type { Tables } from "../../../orchestrator/store/tables.ts";

type Rows = Record<string, unknown>[];

export interface TestDatabase {
  /** The place in the form that `openDatabase` takes. */
  readonly place: string;
  /** Runs a statement with `?` for each value, for changes that no running orchestrator needs to know. */
  query(statement: string, ...values: unknown[]): Promise<Rows>;
  /** Returns everything that is stored, for tests that look for data that must not be there. */
  stored(): Promise<string>;
  drop(): Promise<void>;
}

export interface DatabaseChoice {
  /** The folder of a SQLite file; without it the database is in memory, and `query` cannot reach it. */
  readonly folder?: string;
  /** A PostgreSQL server, or null for none. The default is that of SVC_TEST_POSTGRES, if any. */
  readonly server?: string | null;
}

export async function newDatabase({ folder, ...choice }: DatabaseChoice = {}): Promise<TestDatabase> {
  const server = choice.server === undefined ? process.env["SVC_TEST_POSTGRES"] : choice.server;
  if (server !== undefined && server !== null) return onServer(server);
  return folder === undefined ? inMemory() : inFile(join(folder, "svc.db"));
}

/**
 * As `newDatabase` with a folder, but the schema is there already: its steps run once for each test file, because they take
 * longer than the start of everything else.
 */
export async function newMigratedDatabase(choice: DatabaseChoice & { readonly folder: string }): Promise<TestDatabase> {
  const server = choice.server === undefined ? process.env["SVC_TEST_POSTGRES"] : choice.server;
  if (server !== undefined && server !== null) {
    return onServer(server, await (migrated.onServer ??= migratedOnServer(server)));
  }
  const path = join(choice.folder, "svc.db");
  await copyFile(await (migrated.inFile ??= migratedInFile()), path);
  return inFile(path);
}

function inMemory(): TestDatabase {
  const unreachable = () => Promise.reject(new Error("only its owner reaches a database in memory"));
  return { place: ":memory:", query: unreachable, stored: unreachable, drop: () => Promise.resolve() };
}

function inFile(path: string): TestDatabase {
  return {
    place: path,
    query(statement, ...values) {
      const database = new SQLite(path);
      try {
        const prepared = database.prepare(statement);
        if (prepared.reader) return Promise.resolve(prepared.all(...values) as Rows);
        prepared.run(...values);
        return Promise.resolve([]);
      } finally {
        database.close();
      }
    },
    async stored() {
      const parts = await Promise.all(["", "-wal"].map((suffix) => readFile(`${path}${suffix}`).catch(() => "")));
      return parts.map((part) => part.toString("latin1")).join("\n");
    },
    drop: () => Promise.resolve(),
  };
}

/** @param template the name of the database that the new one copies; PostgreSQL refuses the copy while a client is connected to it */
async function onServer(server: string, template = "template1"): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  const url = new URL(server);
  url.pathname = `/${name}`;
  const place = url.href;
  await ask(server, `create database ${name} template ${template}`);
  return {
    place,
    query: (statement, ...values) => {
      let index = 0;
      return ask(
        place,
        statement.replaceAll("?", () => `$${++index}`),
        values,
      );
    },
    async stored() {
      const tables = await ask(place, "select tablename from pg_tables where schemaname = 'public'");
      const rows = await Promise.all(tables.map(({ tablename }) => ask(place, `select * from "${String(tablename)}"`)));
      return JSON.stringify(rows);
    },
    drop: async () => {
      await ask(server, `drop database ${name} with (force)`);
    },
  };
}

async function ask(url: string, statement: string, values: unknown[] = []): Promise<Rows> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement, values)).rows as Rows;
  } finally {
    await client.end();
  }
}

/**
 * Opens a database of its own, for tests of stores, and drops it when it is closed. The steps of the schema run once for
 * each test file, because they take longer than most properties do; each database begins as an empty copy.
 */
export async function openTestDatabase(): Promise<OpenedDatabase> {
  const server = process.env["SVC_TEST_POSTGRES"];
  if (server === undefined) return copyInMemory();
  const database = await onServer(server, await (migrated.onServer ??= migratedOnServer(server)));
  const opened = await openDatabase(database.place);
  return { ...opened, close: () => opened.close().then(() => database.drop()) };
}

interface Schema {
  /** The statements that make the schema, in an order in which they can run. */
  readonly statements: readonly string[];
  /** The newest step of the schema. */
  readonly newest: string;
}

const migrated: { inMemory?: Promise<Schema>; inFile?: Promise<string>; onServer?: Promise<string> } = {};

/** Makes a file with the schema, which is removed with this process. */
async function migratedInFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "svc-schema-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "svc.db");
  await (await openDatabase(path)).close();
  return path;
}

/** Makes a database with the schema. Its server is removed after the run, and this database with it. */
async function migratedOnServer(server: string): Promise<string> {
  const { place } = await onServer(server);
  await (await openDatabase(place)).close();
  return new URL(place).pathname.slice(1);
}

async function migratedInMemory(): Promise<Schema> {
  const opened = await openDatabase(":memory:");
  const made = sql<{
    type: string;
    name: string;
    sql: string;
  }>`select type, name, sql from sqlite_master where sql is not null`;
  const { rows } = await made.execute(opened.database);
  for (const { type, name } of rows) {
    if (type !== "table" || name.startsWith("kysely_")) continue;
    const { rows: some } = await sql`select 1 from ${sql.table(name)} limit 1`.execute(opened.database);
    if (some.length > 0) throw new Error(`a step of the schema fills ${name}: a copy of the schema lacks those rows`);
  }
  await opened.close();
  return { statements: rows.map((row) => row.sql), newest: opened.schema };
}

/** Opens a database as `openDatabase` does, but without the steps. */
async function copyInMemory(): Promise<OpenedDatabase> {
  const { statements, newest } = await (migrated.inMemory ??= migratedInMemory());
  const emptyLists = new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression });
  const database = new Kysely<Tables>({
    dialect: auditedDialect(openDialect(":memory:").dialect),
    plugins: [emptyLists],
  });
  for (const statement of statements) await sql.raw(statement).execute(database);
  return {
    database,
    schema: newest,
    sqlite: true,
    ballast: noBallast,
    ping: () => sql`select 1`.execute(database).then(() => undefined),
    close: () => database.destroy(),
  };
}

/**
 * Returns the number of tries of a property: a database on a server takes a hundred times as long to make as one in memory.
 */
export function tries(inMemory: number): number {
  return process.env["SVC_TEST_POSTGRES"] === undefined ? inMemory : Math.ceil(inMemory / 6);
}

/** Opens a database on a server as one more orchestrator beside others. */
export function openBeside(place: string): Promise<OpenedDatabase> {
  return openDatabase(place);
}
