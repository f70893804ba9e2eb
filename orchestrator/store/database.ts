/** Opens the store: dialect, schema, close. All other files see only Kysely. */

import { HandleEmptyInListsPlugin, Kysely, Migrator, replaceWithNoncontingentExpression, sql } from "kysely";
import { defined } from "../../shared/defined.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { auditedDialect } from "./audit/dialect.ts";
import { type Listen, openPostgres } from "./postgres/postgres.ts";
import { adoptFormerSteps, newerSteps, schemaSteps } from "./schema/steps.ts";
import { type Ballast, noBallast } from "./sqlite/ballast.ts";
import { type OpenedSqlite, openSqlite } from "./sqlite/sqlite.ts";
import type { Database, Tables } from "./tables.ts";

const emptyLists = new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression });

export interface OpenedDatabase {
  readonly database: Database;
  /** The newest schema step in force. */
  readonly schema: string;
  readonly sqlite: boolean;
  readonly ballast: Ballast;
  /** Hears what other processes announce. Undefined: a SQLite file has none. */
  readonly listen?: Listen;
  ping(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the store and brings its schema up to date, while no other process does so.
 * @param place path of the SQLite file, or a `postgresql://` URL
 */
export async function openDatabase(place: string, log?: Log): Promise<OpenedDatabase> {
  const { dialect, alone, ballast, listen } = openDialect(place, log);
  // PostgreSQL has no syntax for `in` with an empty list, so the plugin replaces it.
  const database = new Kysely<Tables>({ dialect: auditedDialect(dialect), plugins: [emptyLists] });
  let schema: string;
  try {
    schema = await alone(() => bringUpToDate(database));
  } catch (error) {
    await database.destroy();
    throw error;
  }
  return {
    database,
    schema,
    sqlite: !isPostgres(place),
    ballast,
    ...defined({ listen }),
    async ping() {
      await sql`select 1`.execute(database);
    },
    close: () => database.destroy(),
  };
}

/** Returns the newest step in force. The migrator runs the steps under a lock of the database. */
async function bringUpToDate(database: Database): Promise<string> {
  await adoptFormerSteps(database);
  const newer = await newerSteps(database);
  const migrator = new Migrator({ db: database, provider: schemaSteps(newer) });
  const { error, results } = await migrator.migrateToLatest();
  if (error === undefined) {
    const all = await migrator.getMigrations();
    return all.findLast(({ executedAt }) => executedAt !== undefined)?.name ?? "none";
  }
  // A newer version may have made its steps while this one waited for the lock.
  if ((await newerSteps(database)).length > newer.length) return bringUpToDate(database);
  const step = results?.find(({ status }) => status === "Error")?.migrationName;
  const which = step === undefined ? "" : ` (${step})`;
  throw new AppError("internal", `cannot bring the database schema up to date${which}`, { cause: error });
}

function isPostgres(place: string): boolean {
  return /^postgres(ql)?:\/\//.test(place);
}

type OpenedDialect = OpenedSqlite & { readonly listen?: Listen };

/** @param place as of `openDatabase` */
export function openDialect(place: string, log?: Log): OpenedDialect {
  // The migrator takes a lock of PostgreSQL itself.
  if (isPostgres(place)) {
    return { ...openPostgres(place), alone: (work) => work(), ballast: noBallast };
  }
  return openSqlite(place, log);
}
