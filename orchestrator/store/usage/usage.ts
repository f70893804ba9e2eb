/** Samples of what projects use: written every few seconds, rolled up into longer steps, deleted when they are old. */

import { sql } from "kysely";
import type { Database, Session } from "../tables.ts";
import { mark, prune, rolled, rollUp, setMark } from "./roll-up.ts";
import type { StoredSample, UsageSampleRow } from "./row.ts";
import { FINEST, slotOf } from "./steps.ts";

export interface Counters {
  readonly cpuMs: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

/** What the executions of a project used since the last sample, and use now. */
export interface Used extends Counters {
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

export interface Sample extends Used {
  readonly sandboxes: number;
  readonly starts: number;
}

export interface NewSamples {
  /** Beginning of the step, Unix seconds. */
  readonly at: number;
  /** Steps before it that this process should have sampled, and was too busy to. */
  readonly missed: readonly number[];
  /** Beginning of the time in which this process has taken samples. */
  readonly began: number;
  /** By id of the project. */
  readonly used: ReadonlyMap<string, Used>;
  /** By id of the execution: what `used` includes. */
  readonly counters: ReadonlyMap<string, Counters>;
  /** Executions that run no longer. */
  readonly ended: readonly string[];
}

export interface ProjectSample {
  readonly publicId: string;
  readonly sample: Sample;
}

export interface Span {
  readonly began: number;
  readonly until: number;
}

export type UsageStore = ReturnType<typeof usageStore>;

const NOTHING: Sample = {
  sandboxes: 0,
  starts: 0,
  cpuMs: 0,
  memoryBytes: 0,
  diskBytes: 0,
  sentBytes: 0,
  receivedBytes: 0,
};
const RUNNING = ["running", "pausing", "snapshotting"] as const;
const STARTED = ["sandbox.lifecycle.created", "sandbox.lifecycle.resumed"] as const;
const EVENTS = "events";
/** Rows of one statement: few texts of statements, which stay prepared, and no more variables than a database allows. */
const BATCH = 50;

export function usageStore(db: Database) {
  let pruned = 0;
  return {
    async counters(): Promise<Map<string, Counters>> {
      const rows = await db.selectFrom("usage_counters").selectAll().execute();
      return new Map(
        rows.map((row) => [
          row.execution_id,
          { cpuMs: row.cpu_ms, sentBytes: row.sent_bytes, receivedBytes: row.received_bytes },
        ]),
      );
    },

    /**
     * Adds a step to the samples of every project that uses something, in one transaction with everything that it was
     * counted from: a crash counts nothing twice and forgets nothing. Returns the samples that it added.
     */
    async add(samples: NewSamples): Promise<ProjectSample[]> {
      return db.transaction().execute(async (session) => {
        const counted = await countAll(session, samples.used);
        const numbers = await numbersOf(session, [...counted.keys()]);
        const rows: UsageSampleRow[] = [];
        const added: ProjectSample[] = [];
        for (const [projectId, sample] of counted) {
          const project = numbers.get(projectId);
          if (project === undefined) continue;
          added.push({ publicId: project.publicId, sample });
          rows.push(toRow(project.number, samples.at, sample));
          const still = { ...NOTHING, ...gauges(sample) };
          for (const at of samples.missed) rows.push(toRow(project.number, at, still));
        }
        await insertAll(session, rows);
        await rememberCounters(session, samples);
        await extendSpan(session, { began: samples.began, until: samples.at + FINEST });
        await rollUp(session, samples.at);
        pruned = await prune(session, { now: samples.at, after: pruned });
        return added;
      });
    },

    /** The project's samples of a stored step, and the finest ones of the time that is not rolled up yet; oldest first. */
    async samples(
      projectId: string,
      stored: number,
      { start, end }: { readonly start: number; readonly end: number },
    ): Promise<StoredSample[]> {
      const until = stored === FINEST ? end : Math.min(end, (await mark(db, rolled(stored))) ?? 0);
      const rows = (step: number, from: number, to: number) =>
        db
          .selectFrom("usage_samples")
          .select(["at", "sandboxes", "starts", "cpu_ms", "memory_bytes", "disk_bytes", "sent_bytes", "received_bytes"])
          .where("project", "=", (select) =>
            select.selectFrom("usage_projects").select("number").where("project_id", "=", projectId),
          )
          .where("step", "=", step)
          .where("at", ">=", from)
          .where("at", "<", to)
          .orderBy("at")
          .execute();
      const coarse = await rows(stored, slotOf(start, stored), until);
      if (until >= end) return coarse;
      return [...coarse, ...(await rows(FINEST, Math.max(slotOf(start, stored), until), end))];
    },

    /** The times in the range in which samples were taken. */
    async spans({ start, end }: { readonly start: number; readonly end: number }): Promise<Span[]> {
      return db
        .selectFrom("usage_spans")
        .selectAll()
        .where("until", ">", start)
        .where("began", "<", end)
        .orderBy("began")
        .execute();
    },
  };
}

/** Running sandboxes, starts since the last sample, and `used`, by project. */
async function countAll(session: Session, used: ReadonlyMap<string, Used>): Promise<Map<string, Sample>> {
  const samples = new Map<string, Sample>([...used].map(([id, use]) => [id, { ...NOTHING, ...use }]));
  const change = (id: string, values: Partial<Sample>) => {
    samples.set(id, { ...(samples.get(id) ?? NOTHING), ...values });
  };
  const running = await session
    .selectFrom("sandboxes")
    .select((select) => ["project_id", select.fn.countAll<number | string>().as("count")])
    .where("state", "in", RUNNING)
    .groupBy("project_id")
    .execute();
  for (const { project_id, count } of running) change(project_id, { sandboxes: Number(count) });

  const newest = await session
    .selectFrom("events")
    .select((select) => select.fn.max("sequence").as("sequence"))
    .executeTakeFirst();
  const until = newest?.sequence ?? 0;
  const seen = await mark(session, EVENTS);
  // Before the first sample: what has happened until then is not a start of this moment.
  if (seen !== undefined && until > seen) {
    const starts = await session
      .selectFrom("events")
      .select((select) => ["project_id", select.fn.countAll<number | string>().as("count")])
      .where("sequence", ">", seen)
      .where("sequence", "<=", until)
      .where("type", "in", STARTED)
      .groupBy("project_id")
      .execute();
    for (const { project_id, count } of starts) change(project_id, { starts: Number(count) });
  }
  await setMark(session, EVENTS, Math.max(until, seen ?? 0));
  return samples;
}

/** A project that was deleted has none, and nothing is stored for it. */
async function numbersOf(
  session: Session,
  ids: readonly string[],
): Promise<Map<string, { readonly number: number; readonly publicId: string }>> {
  const known = () =>
    session
      .selectFrom("projects")
      .leftJoin("usage_projects", "usage_projects.project_id", "projects.id")
      .select(["projects.id", "projects.public_id", "usage_projects.number"])
      .where("projects.id", "in", ids)
      .execute();
  let rows = await known();
  const missing = rows.filter(({ number }) => number === null);
  if (missing.length > 0) {
    const last = await session
      .selectFrom("usage_projects")
      .select((select) => select.fn.max("number").as("number"))
      .executeTakeFirst();
    const first = (last?.number ?? 0) + 1;
    const values = missing.map(({ id }, index) => ({ project_id: id, number: first + index }));
    await session.insertInto("usage_projects").values(values).execute();
    rows = await known();
  }
  return new Map(rows.map(({ id, public_id, number }) => [id, { number: number ?? 0, publicId: public_id }]));
}

async function insertAll(session: Session, rows: readonly UsageSampleRow[]): Promise<void> {
  for (let first = 0; first < rows.length; first += BATCH) {
    await session
      .insertInto("usage_samples")
      .values(rows.slice(first, first + BATCH))
      // Two samples in one step: the second one is what is in use now, and adds what was counted since the first one.
      .onConflict((conflict) =>
        conflict.columns(["project", "step", "at"]).doUpdateSet((row) => ({
          sandboxes: highest(row.ref("usage_samples.sandboxes"), row.ref("excluded.sandboxes")),
          memory_bytes: highest(row.ref("usage_samples.memory_bytes"), row.ref("excluded.memory_bytes")),
          disk_bytes: highest(row.ref("usage_samples.disk_bytes"), row.ref("excluded.disk_bytes")),
          starts: row("usage_samples.starts", "+", row.ref("excluded.starts")),
          cpu_ms: row("usage_samples.cpu_ms", "+", row.ref("excluded.cpu_ms")),
          sent_bytes: row("usage_samples.sent_bytes", "+", row.ref("excluded.sent_bytes")),
          received_bytes: row("usage_samples.received_bytes", "+", row.ref("excluded.received_bytes")),
        })),
      )
      .execute();
  }
}

// The two databases have different names for the greater of two values.
function highest(one: unknown, other: unknown) {
  return sql<number>`case when ${one} > ${other} then ${one} else ${other} end`;
}

async function rememberCounters(session: Session, { counters, ended }: NewSamples): Promise<void> {
  const rows = [...counters].map(([execution_id, { cpuMs, sentBytes, receivedBytes }]) => ({
    execution_id,
    cpu_ms: cpuMs,
    sent_bytes: sentBytes,
    received_bytes: receivedBytes,
  }));
  for (let first = 0; first < rows.length; first += BATCH) {
    await session
      .insertInto("usage_counters")
      .values(rows.slice(first, first + BATCH))
      .onConflict((conflict) =>
        conflict.column("execution_id").doUpdateSet((row) => ({
          cpu_ms: row.ref("excluded.cpu_ms"),
          sent_bytes: row.ref("excluded.sent_bytes"),
          received_bytes: row.ref("excluded.received_bytes"),
        })),
      )
      .execute();
  }
  for (let first = 0; first < ended.length; first += BATCH) {
    await session
      .deleteFrom("usage_counters")
      .where("execution_id", "in", ended.slice(first, first + BATCH))
      .execute();
  }
}

async function extendSpan(session: Session, { began, until }: Span): Promise<void> {
  await session
    .insertInto("usage_spans")
    .values({ began, until })
    .onConflict((conflict) => conflict.column("began").doUpdateSet({ until }))
    .execute();
}

function gauges({ sandboxes, memoryBytes, diskBytes }: Sample) {
  return { sandboxes, memoryBytes, diskBytes };
}

function toRow(project: number, at: number, sample: Sample): UsageSampleRow {
  return {
    project,
    step: FINEST,
    at,
    sandboxes: sample.sandboxes,
    starts: sample.starts,
    cpu_ms: Math.round(sample.cpuMs),
    memory_bytes: sample.memoryBytes,
    disk_bytes: sample.diskBytes,
    sent_bytes: sample.sentBytes,
    received_bytes: sample.receivedBytes,
  };
}
