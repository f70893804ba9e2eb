/** The database of one test: a SQLite file, or with SVC_TEST_POSTGRES a database on that server. Nothing of it stays. */

import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import SQLite from "better-sqlite3";
import { Kysely } from "kysely";
import { Client } from "pg";
import { type OpenedDatabase, openDatabase, openDialect } from "../../../orchestrator/store/database.ts";
import type { Tables } from "../../../orchestrator/store/tables.ts";
import type { Seal } from "../../../shared/program/seal.ts";
import { testSeal } from "./test-seal.ts";

type Rows = Record<string, unknown>[];

export interface TestDatabase {
  /** As `openDatabase` takes it. */
  readonly place: string;
  /** A statement with `?` for each value, while no orchestrator needs to know of it. */
  query(statement: string, ...values: unknown[]): Promise<Rows>;
  /** Everything that is stored, for tests that look for what must not be. */
  stored(): Promise<string>;
  drop(): Promise<void>;
}

export interface DatabaseChoice {
  /** Where a SQLite file goes; without one the database is in memory, and `query` cannot reach it. */
  readonly folder?: string;
  /** A PostgreSQL server, or null for none. Default: that of SVC_TEST_POSTGRES, if any. */
  readonly server?: string | null;
}

export async function newDatabase({ folder, ...choice }: DatabaseChoice = {}): Promise<TestDatabase> {
  const server = choice.server === undefined ? process.env["SVC_TEST_POSTGRES"] : choice.server;
  if (server !== undefined && server !== null) return onServer(server);
  return folder === undefined ? inMemory() : inFile(join(folder, "svc.db"));
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

async function onServer(server: string): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  const url = new URL(server);
  url.pathname = `/${name}`;
  const place = url.href;
  await ask(server, `create database ${name}`);
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

/** An opened database of its own, for tests of stores; it is dropped when it is closed. */
export async function openTestDatabase(sealing: Seal = testSeal): Promise<OpenedDatabase> {
  const database = await newDatabase();
  const opened = await openDatabase(database.place, sealing);
  return { ...opened, close: () => opened.close().then(() => database.drop()) };
}

/** How often a property is tried: making a database takes a server a hundred times as long as memory. */
export function tries(inMemory: number): number {
  return process.env["SVC_TEST_POSTGRES"] === undefined ? inMemory : Math.ceil(inMemory / 6);
}

/** The same before any step of the schema, for tests of the steps. */
export async function emptyTestDatabase(): Promise<{
  readonly db: Kysely<Tables>;
  readonly drop: () => Promise<void>;
}> {
  const database = await newDatabase();
  const db = new Kysely<Tables>({ dialect: openDialect(database.place).dialect });
  return { db, drop: () => db.destroy().then(() => database.drop()) };
}
