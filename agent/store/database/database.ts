/** Opens the agent's SQLite file. Only this folder imports better-sqlite3. */

import Database from "better-sqlite3";
import { ADDED, SCHEMA, VERSION } from "./schema.ts";

export type Sqlite = Database.Database;

/**
 * `path` is a file (made with mode 0600 by the umask of the program) or ":memory:".
 * @throws {Error} for a file that has the schema of another version
 */
export function openDatabase(path: string): Sqlite {
  const database = new Database(path, { timeout: 5_000 });
  database.pragma("journal_mode = WAL");
  // A power cut ends the containers too, so lost rows do not matter; a crash of the program loses nothing.
  database.pragma("synchronous = NORMAL");
  const found = database.pragma("user_version", { simple: true }) as number;
  if (found !== 0 && found !== VERSION) {
    database.close();
    throw new Error(
      `the agent's database ${path} has schema ${found}, and this version reads schema ${VERSION} only: start the version that wrote the file, or move the file away, and the agent holds what is on the node`,
    );
  }
  database.transaction(() => {
    if (found === 0) database.exec(SCHEMA);
    database.exec(ADDED);
    database.pragma(`user_version = ${VERSION}`);
  })();
  return database;
}

/**
 * Removes data that was overwritten or deleted before, secrets among it, from the file's free pages and its log. False: another
 * program reads the file, so its log is still there.
 */
export function forgetRemoved(database: Sqlite): boolean {
  database.exec("vacuum");
  const [checkpoint] = database.pragma("wal_checkpoint(truncate)") as { busy: number }[];
  return checkpoint?.busy === 0;
}

/** Context of a sealed policy. */
export function egressContext(executionId: string): string {
  return `${executionId} egress`;
}

/** Context of a sealed control token, by the id of its row: a container, or a snapshot with its disk. */
export function controlContext(id: string): string {
  return `${id} control token`;
}
