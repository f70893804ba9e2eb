/**
 * Watches the write-ahead log beside the SQLite database. When somebody deletes or replaces one of its files, SQLite goes on with the
 * file that it has open, and the next start would not find what was committed there: the journal writes everything committed into
 * the database's own file and begins a new log. What is committed between the deletion and the next look is at risk until then.
 */

import { rmSync, statSync } from "node:fs";
import type { Log } from "../../../shared/program/log.ts";

const LOOK_EVERY_MS = 1_000;
/** A transaction is under way, which takes a few milliseconds. */
const LOOK_AGAIN_MS = 10;

export interface JournalOptions {
  readonly path: string;
  /** Absent: nobody reads what became of the files. */
  readonly log?: Pick<Log, "warn"> | undefined;
  readonly lookEveryMs?: number | undefined;
}

/** As far as the journal uses it. */
interface Connection {
  readonly inTransaction: boolean;
  pragma(source: string, options?: { readonly simple?: boolean }): unknown;
}

export interface Journal {
  stop(): void;
}

/** @param database its only connection in this process, in WAL mode */
export function startJournal(
  database: Connection,
  { path, log, lookEveryMs = LOOK_EVERY_MS }: JournalOptions,
): Journal {
  const files = [`${path}-wal`, `${path}-shm`] as const;
  let known = identities();
  /** Whether the log says already that the files are not as they were. */
  let isWarned = false;
  let timer = after(lookEveryMs);

  function identities(): readonly (string | undefined)[] {
    // SQLite opens both files with the first statement that reads.
    database.pragma("user_version");
    return files.map(identity);
  }

  function after(ms: number): NodeJS.Timeout {
    return setTimeout(look, ms).unref();
  }

  function look(): void {
    const changed = files.filter((file, index) => identity(file) !== known[index]);
    let next = lookEveryMs;
    if (changed.length > 0) {
      // The connection is in the middle of somebody's transaction, in which the log cannot be changed.
      if (database.inTransaction) next = LOOK_AGAIN_MS;
      else mend(changed);
    }
    timer = after(next);
  }

  function mend(changed: readonly string[]): void {
    try {
      beginAnew();
      known = identities();
      log?.warn(
        { files: changed },
        "files of the database's log were deleted or replaced: wrote everything committed into the database and began a new log",
      );
      isWarned = false;
    } catch (error) {
      // Another program reads the database, or its disk is full. The next look tries again.
      if (!isWarned)
        log?.warn(
          { err: error, files: changed },
          "files of the database's log were deleted or replaced, and the log cannot be begun again yet: what is committed now is lost if the orchestrator is killed",
        );
      isWarned = true;
    }
  }

  /** @throws when another connection has the database open */
  function beginAnew(): void {
    // The next start would take another log's contents for this database's.
    const [wal] = files;
    if (identity(wal) !== known[0]) rmSync(wal, { force: true });
    // Another program may read the database: no request waits for it.
    const patience = String(database.pragma("busy_timeout", { simple: true }));
    database.pragma("busy_timeout = 0");
    try {
      exchangeLog();
    } finally {
      database.pragma(`busy_timeout = ${patience}`);
    }
  }

  function exchangeLog(): void {
    if (database.pragma("wal_checkpoint(TRUNCATE)", { simple: true }) !== 0)
      throw new Error("another program has the database open");
    // Only a change of the mode closes the former files.
    for (const mode of ["DELETE", "WAL"]) {
      const got = String(database.pragma(`journal_mode = ${mode}`, { simple: true }));
      if (got.toUpperCase() !== mode)
        throw new Error(`the database stays in the journal mode '${got}' instead of '${mode}'`);
    }
  }

  return { stop: () => clearTimeout(timer) };
}

/** Undefined: there is no such file. A file that is open keeps its number, however long it is deleted. */
function identity(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;
}
