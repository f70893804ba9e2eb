/** Opens the store: dialect, migrations, close. All other files see only Kysely. */

import { HandleEmptyInListsPlugin, Kysely, Migrator, replaceWithNoncontingentExpression, sql } from "kysely";
import { AppError } from "../../shared/http/errors.ts";
import type { Seal } from "../../shared/program/seal.ts";
import { auditedDialect } from "./audit/dialect.ts";
import { type Ballast, noBallast } from "./ballast.ts";
import { migrations } from "./migrations/migrations.ts";
import { openPostgres } from "./postgres.ts";
import { openSqlite } from "./sqlite.ts";
import type { Database, Tables } from "./tables.ts";

const emptyLists = new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression });

export interface OpenedDatabase {
  readonly database: Database;
  /** The newest schema step in force. */
  readonly schema: string;
  readonly sqlite: boolean;
  readonly ballast: Ballast;
  ping(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the store and brings its schema up to date, while no other process does so.
 * @param place path of the SQLite file, or a `postgresql://` URL
 */
export async function openDatabase(place: string, sealing: Seal): Promise<OpenedDatabase> {
  const { dialect, alone, forgetRemoved, ballast } = openDialect(place);
  // PostgreSQL has no syntax for `in` with an empty list, so the plugin replaces it.
  const database = new Kysely<Tables>({ dialect: auditedDialect(dialect), plugins: [emptyLists] });
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
    sqlite: !isPostgres(place),
    ballast,
    async ping() {
      await sql`select 1`.execute(database);
    },
    close: () => database.destroy(),
  };
}

function isPostgres(place: string): boolean {
  return /^postgres(ql)?:\/\//.test(place);
}

type OpenedDialect = ReturnType<typeof openSqlite>;

/** @param place as of `openDatabase` */
export function openDialect(place: string): OpenedDialect {
  // PostgreSQL's connection holds its own lock, and the server cleans its files itself.
  if (isPostgres(place)) {
    return { ...openPostgres(place), alone: (work) => work(), forgetRemoved: () => undefined, ballast: noBallast };
  }
  return openSqlite(place);
}
