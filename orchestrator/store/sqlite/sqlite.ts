/** The embedded database: one SQLite file. All SQL specific to SQLite; the only importer of better-sqlite3 here. */

import { chmodSync } from "node:fs";
import SQLite from "better-sqlite3";
import { type Dialect, SqliteDialect } from "kysely";
import { LRUCache } from "lru-cache";
import type { Log } from "../../../shared/program/log.ts";
import { type Ballast, fileBallast, noBallast } from "./ballast.ts";
import { startJournal } from "./journal.ts";

export interface OpenedSqlite {
  readonly dialect: Dialect;
  /** Runs `work` while no other process that opens this file runs its own. */
  readonly alone: <T>(work: () => Promise<T>) => Promise<T>;
  readonly ballast: Ballast;
}

const LOCK_WAIT_MS = 30_000;

/** `path` may be `:memory:`. The file holds secrets (sealed) and is readable by its owner only. */
export function openSqlite(path: string, log?: Log): OpenedSqlite {
  const ballast = path === ":memory:" ? noBallast : fileBallast(`${path}-ballast`);
  ballast.makeRoom();
  const database = new SQLite(path);
  if (path !== ":memory:") chmodSync(path, 0o600);
  database.pragma("journal_mode = WAL");
  // A crash of the machine may lose the last transactions, never consistency; a crash of the process loses nothing.
  database.pragma("synchronous = NORMAL");
  database.pragma("foreign_keys = ON");
  database.pragma("busy_timeout = 5000");
  database.pragma("cache_size = -65536");
  const journal = path === ":memory:" ? undefined : startJournal(database, { path, log });
  return {
    ballast,
    dialect: new SqliteDialect({
      database: {
        close() {
          journal?.stop();
          database.close();
        },
        prepare: remembered((text) => database.prepare(text)),
      },
    }),
    async alone(work) {
      if (path === ":memory:") return work();
      // Locks a separate file: the kernel releases the lock with the process, and readers of the data do not wait.
      const lock = new SQLite(`${path}-lock`, { timeout: LOCK_WAIT_MS });
      try {
        lock.exec("begin exclusive");
        return await work();
      } finally {
        lock.close();
      }
    },
  };
}

const REMEMBERED = 256;

/** Caches prepared statements: there are few texts, and parsing one costs more than running most of them. */
function remembered<S extends object>(prepare: (text: string) => S): (text: string) => S {
  const statements = new LRUCache<string, S>({ max: REMEMBERED });
  return (text) => {
    const known = statements.get(text);
    if (known !== undefined) return known;
    const statement = prepare(text);
    statements.set(text, statement);
    return statement;
  };
}
