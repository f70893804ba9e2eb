/** SQL on the rows of samples: adding them to those that are there, and the finest ones of a project. */

import { sql } from "kysely";
import type { Database, Session } from "../tables.ts";
import { compiledForRows, inBatches } from "./batches.ts";
import type { StoredSample, UsageTables } from "./row.ts";
import { FINEST, slotOf } from "./steps.ts";

const IN_USE = ["sandboxes", "memory_bytes", "disk_bytes"] as const;
const COUNTED = ["starts", "cpu_ms", "sent_bytes", "received_bytes"] as const;
export const SAMPLE = ["at", ...IN_USE, ...COUNTED] as const;

// The two databases have different names for the greater of two values.
export function highest(one: unknown, other: unknown) {
  return sql<number>`case when ${one} > ${other} then ${one} else ${other} end`;
}

/** @param key the primary key of the table; `SAMPLE` has the other columns */
export function sampleInsertion<T extends "usage_finest" | "usage_samples">(
  db: Database,
  table: T,
  key: readonly (keyof UsageTables[T] & string)[],
) {
  type Row = UsageTables[T] & StoredSample;
  const columns = [...key, ...IN_USE, ...COUNTED] as readonly (keyof Row & string)[];
  const compiled = compiledForRows((count) => {
    const row = sql`(${sql.join(columns.map(() => 0))})`;
    const old = (name: string) => sql.ref(`${table}.${name}`);
    const added = (name: string) => sql.ref(`excluded.${name}`);
    const changes = [
      ...IN_USE.map((name) => sql`${sql.ref(name)} = ${highest(old(name), added(name))}`),
      ...COUNTED.map((name) => sql`${sql.ref(name)} = ${old(name)} + ${added(name)}`),
    ];
    const names = (of: readonly string[]) => sql.join(of.map((name) => sql.ref(name)));
    // Two samples in one step: the second one is what is in use now, and adds what was counted since the first one.
    return sql`insert into ${sql.table(table)} (${names(columns)})
      values ${sql.join(Array.from({ length: count }, () => row))}
      on conflict (${names(key)}) do update set ${sql.join(changes)}`.compile(db);
  });
  return (session: Session, rows: readonly Row[]): Promise<void> =>
    inBatches(rows, (batch) =>
      session.executeQuery(
        compiled(
          batch.length,
          batch.flatMap((row) => columns.map((name) => row[name])),
        ),
      ),
    );
}

/** The finest samples of a project, which are found time by time. */
export function finestSelection(db: Database) {
  const compiled = compiledForRows((count) =>
    db
      .selectFrom("usage_finest")
      .select(SAMPLE)
      .where("project", "=", 0)
      .where(
        "at",
        "in",
        Array.from({ length: count }, () => 0),
      )
      .compile(),
  );
  return async (
    session: Session,
    project: number,
    { start, end }: { readonly start: number; readonly end: number },
  ): Promise<StoredSample[]> => {
    const times: number[] = [];
    for (let at = slotOf(start, FINEST); at < end; at += FINEST) times.push(at);
    const samples: StoredSample[] = [];
    await inBatches(times, async (batch) => {
      const { rows } = await session.executeQuery(compiled(batch.length, [project, ...batch]));
      samples.push(...rows);
    });
    return samples;
  };
}
