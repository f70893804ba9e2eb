/** Numbered steps of the schema, forward only. A published step is never edited; the next one corrects it. */

import { type MigrationProvider, sql } from "kysely";
import { AppError } from "../../../shared/http/errors.ts";
import type { Database } from "../tables.ts";
import { createTables } from "./tables.ts";

const FIRST = "schema-0001";

export const schemaSteps: MigrationProvider = {
  getMigrations: () => Promise.resolve({ [FIRST]: { up: createTables } }),
};

/** Before there was a first step, this one completed the schema that `FIRST` makes. */
const LAST_FORMER = "0017";

/**
 * Recognises a database that earlier versions have brought to the schema of the first step, and notes that step in place of
 * theirs. @throws {AppError} internal, for a database that they have not brought so far
 */
export async function adoptFormerSteps(db: Database): Promise<void> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some(({ name }) => name === "kysely_migration")) return;
  await db.transaction().execute(async (session) => {
    const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(session);
    const newest = rows.findLast(({ name }) => /^\d{4}$/.test(name))?.name;
    if (newest === undefined) return;
    if (newest !== LAST_FORMER)
      throw new AppError(
        "internal",
        `the database has the schema ${newest} of an earlier version, and this version goes on from ${LAST_FORMER} only: start the last version before schema-0001 with it once, or begin with an empty database`,
      );
    await sql`delete from kysely_migration where name <> ${LAST_FORMER}`.execute(session);
    await sql`update kysely_migration set name = ${FIRST}`.execute(session);
  });
}
