/** Opens the store: dialect, migrations, close. Everything else sees only Kysely. */

import { Kysely, Migrator, sql } from "kysely";
import { AppError } from "../../shared/errors.ts";
import type { Seal } from "../../shared/seal.ts";
import { migrations } from "./migrations.ts";
import { openSqlite } from "./sqlite.ts";
import type { Database, Tables } from "./tables.ts";

export interface OpenedDatabase {
  readonly database: Database;
  /** The newest schema step that is in force. */
  readonly schema: string;
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** Opens the SQLite file and brings its schema up to date, alone among all processes that do so. */
export async function openDatabase(path: string, sealing: Seal): Promise<OpenedDatabase> {
  const { dialect, alone, forgetRemoved } = openSqlite(path);
  const database = new Kysely<Tables>({ dialect });
  const migrator = new Migrator({ db: database, provider: migrations(sealing) });
  const { error, results } = await alone(() => migrator.migrateToLatest());
  if (error !== undefined) {
    const step = results?.find(({ status }) => status === "Error")?.migrationName;
    await database.destroy();
    throw new AppError(
      "internal",
      `cannot bring the database schema up to date${step === undefined ? "" : ` (${step})`}`,
      {
        cause: error,
      },
    );
  }
  await alone(() => Promise.resolve(forgetRemoved()));
  const all = await migrator.getMigrations();
  return {
    database,
    schema: all.findLast(({ executedAt }) => executedAt !== undefined)?.name ?? "none",
    async ping() {
      await sql`select 1`.execute(database);
    },
    close: () => database.destroy(),
  };
}
