/** Sums up samples into longer steps, and deletes old ones; marks say how far that has been done. */

import { sql } from "kysely";
import type { Session } from "../tables.ts";
import { packOld } from "./blocks.ts";
import { COARSEST, FINEST, STORED_STEPS, slotOf } from "./steps.ts";

/**
 * Sums up the steps that are over, from the next finer ones. Each step is summed up once, also after a crash, and a clock that
 * is set back does not do it again.
 * @param marks of every step, as they were before
 */
export async function rollUp(session: Session, now: number, marks: Marks): Promise<void> {
  for (const [index, { seconds }] of STORED_STEPS.entries()) {
    const finer = STORED_STEPS[index - 1]?.seconds;
    if (finer === undefined) continue;
    const until = slotOf(now, seconds);
    const from = marks.get(rolled(seconds));
    if (from !== undefined && from >= until) continue;
    if (from !== undefined) {
      const source = finer === FINEST ? sql`usage_finest where` : sql`usage_samples where step = ${sql.lit(finer)} and`;
      // The list of projects lets the database find each one's samples by the key, and leaves out those of deleted projects.
      await sql`
        insert into usage_samples (project, step, at, sandboxes, starts, cpu_ms, memory_bytes, disk_bytes, sent_bytes, received_bytes)
        select project, ${sql.lit(seconds)}, (at / ${sql.lit(seconds)}) * ${sql.lit(seconds)}, max(sandboxes), sum(starts),
          cast(sum(cpu_ms) as bigint), max(memory_bytes), max(disk_bytes), cast(sum(sent_bytes) as bigint),
          cast(sum(received_bytes) as bigint)
        from ${source} project in (select number from usage_projects) and at >= ${from} and at < ${until}
        group by project, at / ${sql.lit(seconds)}
        on conflict (project, step, at) do nothing`.execute(session);
    }
    await setMark(session, rolled(seconds), until);
  }
}

/** What one round deletes at most of the finest samples, seconds: after a stop of the platform there are more old ones. */
const DELETED_S = 60;

/**
 * Packs and deletes the old samples of one project, the next one after `after`, and deletes old spans and the finest samples
 * of all projects; returns that project.
 */
export async function prune(
  session: Session,
  { now, after }: { readonly now: number; readonly after: number },
): Promise<number> {
  const oldest = now - Math.max(...STORED_STEPS.map(({ keptFor }) => keptFor));
  await session.deleteFrom("usage_spans").where("until", "<", oldest).execute();
  await pruneFinest(session, now);
  const next = await session
    .selectFrom("usage_projects")
    .select("number")
    .where("number", ">", after)
    .orderBy("number")
    .limit(1)
    .executeTakeFirst();
  if (next === undefined) return 0;
  // Every step is rolled up from the one before, so what the coarsest is rolled up from may be packed.
  await packOld(session, next.number, (await mark(session, rolled(COARSEST))) ?? 0);
  for (const { seconds, keptFor, block } of STORED_STEPS) {
    if (block === undefined) continue;
    await session
      .deleteFrom("usage_samples")
      .where("project", "=", next.number)
      .where("step", "=", seconds)
      .where("at", "<", now - keptFor)
      .execute();
    await session
      .deleteFrom("usage_blocks")
      .where("project", "=", next.number)
      .where("step", "=", seconds)
      .where("at", "<=", now - keptFor - block)
      .execute();
  }
  return next.number;
}

async function pruneFinest(session: Session, now: number): Promise<void> {
  const keptFor = STORED_STEPS.find(({ seconds }) => seconds === FINEST)?.keptFor ?? 0;
  const first = await session
    .selectFrom("usage_finest")
    .select((select) => select.fn.min("at").as("at"))
    .executeTakeFirst();
  if (typeof first?.at !== "number" || first.at >= now - keptFor) return;
  await session
    .deleteFrom("usage_finest")
    .where("at", "<", Math.min(now - keptFor, first.at + DELETED_S))
    .execute();
}

/** The mark of a step: its samples are complete until then. */
export function rolled(step: number): string {
  return `rolled ${step}`;
}

/** By name. */
export type Marks = ReadonlyMap<string, number>;

export async function allMarks(session: Session): Promise<Marks> {
  const marks = await session.selectFrom("usage_marks").selectAll().execute();
  return new Map(marks.map(({ name, value }) => [name, value]));
}

export async function mark(session: Session, name: string): Promise<number | undefined> {
  return (await session.selectFrom("usage_marks").select("value").where("name", "=", name).executeTakeFirst())?.value;
}

export async function setMark(session: Session, name: string, value: number): Promise<void> {
  await session
    .insertInto("usage_marks")
    .values({ name, value })
    .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
    .execute();
}
