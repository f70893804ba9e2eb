/** A database on a PostgreSQL server that two processes have opened, as two orchestrators do. */

import type { OpenedDatabase } from "../../../orchestrator/store/database.ts";
import { startPostgres } from "../postgres/cluster.ts";
import { newDatabase, openBeside, type TestDatabase } from "./databases.ts";

export interface SharedDatabase {
  readonly database: TestDatabase;
  readonly opened: readonly [OpenedDatabase, OpenedDatabase];
  close(): Promise<void>;
}

/** Uses the server of SVC_TEST_POSTGRES, or starts one. Both bring the schema up to date at the same time. */
export async function openShared(): Promise<SharedDatabase> {
  const given = process.env["SVC_TEST_POSTGRES"];
  const server = given === undefined ? await startPostgres() : undefined;
  try {
    const database = await newDatabase({ server: server?.url ?? given ?? null });
    const opened = await Promise.all([openBeside(database.place), openBeside(database.place)]);
    return {
      database,
      opened,
      async close() {
        for (const each of opened) await each.close();
        await database.drop();
        await server?.stop();
      },
    };
  } catch (error) {
    await server?.stop();
    throw error;
  }
}
