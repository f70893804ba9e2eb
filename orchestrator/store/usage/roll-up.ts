/** Sums up samples into longer steps, and deletes old ones; marks say how far that has been done. */

import { sql } from "kysely";
import type { Session } from "../tables.ts";
import { STORED_STEPS, slotOf } from "./steps.ts";

/** Sums up the steps that are over, from the next finer ones. Each step is summed up once, also after a crash. */
export async function rollUp(session: Session, now: number): Promise<void> {
  for (const [index, { seconds }] of STORED_STEPS.entries()) {
    const finer = STORED_STEPS[index - 1]?.seconds;
    if (finer === undefined) continue;
    const until = slotOf(now, seconds);
    const from = await mark(session, rolled(seconds));
    if (from !== undefined && from >= until) continue;
    // The list of projects lets the database find each one's samples by the primary key.
    if (from !== undefined)
      await sql`
        insert into usage_samples (project, step, at, sandboxes, starts, cpu_ms, memory_bytes, disk_bytes, sent_bytes, received_bytes)
        select project, ${sql.lit(seconds)}, (at / ${sql.lit(seconds)}) * ${sql.lit(seconds)}, max(sandboxes), sum(starts),
          cast(sum(cpu_ms) as bigint), max(memory_bytes), max(disk_bytes), cast(sum(sent_bytes) as bigint),
          cast(sum(received_bytes) as bigint)
        from usage_samples
        where project in (select number from usage_projects) and step = ${sql.lit(finer)}
          and at >= ${sql.lit(from)} and at < ${sql.lit(until)}
        group by project, at / ${sql.lit(seconds)}
        on conflict (project, step, at) do nothing`.execute(session);
    await setMark(session, rolled(seconds), until);
  }
}

/** Deletes the old samples of one project, the next one after `after`, and old spans; returns that project. */
export async function prune(
  session: Session,
  { now, after }: { readonly now: number; readonly after: number },
): Promise<number> {
  const oldest = now - Math.max(...STORED_STEPS.map(({ keptFor }) => keptFor));
  await session.deleteFrom("usage_spans").where("until", "<", oldest).execute();
  const next = await session
    .selectFrom("usage_projects")
    .select("number")
    .where("number", ">", after)
    .orderBy("number")
    .limit(1)
    .executeTakeFirst();
  if (next === undefined) return 0;
  for (const { seconds, keptFor } of STORED_STEPS) {
    await session
      .deleteFrom("usage_samples")
      .where("project", "=", next.number)
      .where("step", "=", seconds)
      .where("at", "<", now - keptFor)
      .execute();
  }
  return next.number;
}

/** The mark of a step: its samples are complete until then. */
export function rolled(step: number): string {
  return `rolled ${step}`;
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
