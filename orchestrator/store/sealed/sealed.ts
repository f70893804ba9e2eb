/** SQL on sealed values of any table: how many are not under the current key, and their renewal. */

import { sql } from "kysely";
import type { KeyedSeal } from "../../../shared/program/sealing/seal.ts";
import type { Database } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { SEALED_COLUMNS, type SealedColumn } from "./columns.ts";

interface Value {
  readonly id: string;
  readonly sealed: string;
}

export interface Renewed {
  /** The id to go on after; undefined: there is no further value. */
  readonly last: string | undefined;
  readonly renewed: number;
  /** Values that none of the keys opens. */
  readonly unreadable: number;
}

export type SealedStore = ReturnType<typeof sealedStore>;

export function sealedStore(db: Database, sealing: KeyedSeal) {
  const isOld = sql`not like ${`${sealing.prefix}%`}`;
  return {
    columns: SEALED_COLUMNS,

    /** Number of values that are not under the current key. */
    async countOld(): Promise<number> {
      let count = 0;
      for (const { table, column } of SEALED_COLUMNS) {
        const found = sql<{ count: number | string }>`
          select count(*) as count from ${sql.table(table)} where ${sql.ref(column)} ${isOld}`;
        count += Number((await found.execute(db)).rows[0]?.count ?? 0);
      }
      return count;
    },

    /**
     * Renews at most `limit` values of a column, in the order of their ids, in one transaction. A value that was replaced
     * meanwhile is under the current key already.
     */
    async renew(
      { table, key, column, context }: SealedColumn,
      { after, limit }: { readonly after: string; readonly limit: number },
    ): Promise<Renewed> {
      const [from, id, name] = [sql.table(table), sql.ref(key), sql.ref(column)];
      return inTransaction(db, async (session) => {
        const found = sql<Value>`select ${id} as id, ${name} as sealed from ${from}
          where ${id} > ${after} and ${name} ${isOld} order by ${id} limit ${limit}`;
        const { rows } = await found.execute(session);
        let unreadable = 0;
        for (const { id: of, sealed } of rows) {
          const value = reopened(sealing, sealed, context(of));
          if (value === undefined) unreadable++;
          else
            await sql`update ${from} set ${name} = ${value} where ${id} = ${of} and ${name} = ${sealed}`.execute(
              session,
            );
        }
        return { last: rows.at(-1)?.id, renewed: rows.length - unreadable, unreadable };
      });
    },
  };
}

/** The value under the current key; undefined: it does not open. */
function reopened(sealing: KeyedSeal, sealed: string, context: string): string | undefined {
  let text: string;
  try {
    text = sealing.open(sealed, context);
  } catch {
    return undefined;
  }
  return sealing.close(text, context);
}
