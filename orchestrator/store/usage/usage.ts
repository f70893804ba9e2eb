/** Samples of what projects use: written every few seconds, rolled up into longer steps, deleted when they are old. */

import { lock, locks } from "../locks.ts";
import { LIVE } from "../projects/use.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { compiledForRows, inBatches } from "./batches.ts";
import { packedSamples, rowsOf } from "./blocks.ts";
import { countAll, projectsOf } from "./counting.ts";
import { allMarks, type Marks, mark, prune, rolled, rollUp } from "./roll-up.ts";
import type { FinestSampleRow, StoredSample } from "./row.ts";
import { finestSelection, highest, sampleInsertion } from "./rows.ts";
import { type Counters, gauges, type Sample, type Used } from "./sample.ts";
import { FINEST, STORED_STEPS, slotOf } from "./steps.ts";

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
  /** Executions that no node has reported for a while. */
  readonly silent: readonly string[];
}

export interface Added {
  readonly samples: readonly ProjectSample[];
  /** Those of the silent executions that run no longer. The others may be on a node that cannot be reached. */
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

/** How long a process must have taken samples before it deletes old ones: until then a wrong clock may have been set right. */
const SETTLED_S = 600;

export function usageStore(db: Database) {
  const insertFinest = sampleInsertion(db, "usage_finest", ["at", "project"]);
  const insertSamples = sampleInsertion(db, "usage_samples", ["project", "step", "at"]);
  const selectFinest = finestSelection(db);
  const insertCounters = compiledForRows((count) => counterInsertion(db, count));
  const findProjects = projectsOf(db);
  let pruned = 0;

  async function rememberCounters(session: Session, { counters }: NewSamples): Promise<void> {
    await inBatches([...counters], (batch) =>
      session.executeQuery(
        insertCounters(
          batch.length,
          batch.flatMap(([id, { cpuMs, sentBytes, receivedBytes }]) => [id, cpuMs, sentBytes, receivedBytes]),
        ),
      ),
    );
  }

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
    async add(samples: NewSamples): Promise<Added> {
      return inTransaction(db, async (session) => {
        await lock(session, locks.usage);
        const marks = await allMarks(session);
        const counted = await countAll(session, samples.used, marks);
        const projects = await findProjects(session, [...counted.keys()], marks);
        const added = projects.flatMap(({ id, publicId, number }) => {
          const sample = counted.get(id);
          return sample === undefined ? [] : [{ number, publicId, sample }];
        });
        for (const at of [samples.at, ...samples.missed]) {
          const stored = added.map(({ number, sample }) =>
            toRow(number, at, at === samples.at ? sample : gauges(sample)),
          );
          await insertFinest(session, stored);
          for (const step of rolledUpAt(at, marks)) {
            const longer = stored.map((row) => ({ ...row, step, at: slotOf(at, step) }));
            await insertSamples(session, longer);
          }
        }
        await rememberCounters(session, samples);
        const ended = await forgetEnded(session, samples.silent);
        await extendSpan(session, { began: samples.began, until: samples.at + FINEST });
        await rollUp(session, samples.at, marks);
        if (samples.at - samples.began >= SETTLED_S) {
          pruned = await prune(session, { now: samples.at, after: pruned });
        }
        return { samples: added.map(({ publicId, sample }) => ({ publicId, sample })), ended };
      });
    },

    /**
     * The project's samples of a stored step, and the finest ones of the time that is not rolled up yet; oldest first. Two
     * may be of the same step.
     */
    async samples(
      projectId: string,
      stored: number,
      { start, end }: { readonly start: number; readonly end: number },
    ): Promise<StoredSample[]> {
      // One transaction: samples may be packed, which moves them, between two statements.
      return inTransaction(db, async (session) => {
        const known = await session
          .selectFrom("usage_projects")
          .select("number")
          .where("project_id", "=", projectId)
          .executeTakeFirst();
        if (known === undefined) return [];
        const project = known.number;
        const first = slotOf(start, stored);
        const until = stored === FINEST ? first : Math.min(end, (await mark(session, rolled(stored))) ?? 0);
        const range = { project, step: stored, start: first, end: until };
        const packed = await packedSamples(session, range);
        const coarse = await rowsOf(session, range);
        const fine = await selectFinest(session, project, { start: Math.max(first, until), end });
        return [...packed, ...coarse, ...fine].sort((one, other) => one.at - other.at);
      });
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

/** The longer steps that are rolled up already beyond this time: those of a clock that was set back. */
function rolledUpAt(at: number, marks: Marks): number[] {
  return STORED_STEPS.map(({ seconds }) => seconds).filter((seconds) => at < (marks.get(rolled(seconds)) ?? 0));
}

function counterInsertion(db: Database, count: number) {
  const example = { execution_id: "", cpu_ms: 0, sent_bytes: 0, received_bytes: 0 };
  return db
    .insertInto("usage_counters")
    .values(Array.from({ length: count }, () => example))
    .onConflict((conflict) =>
      conflict.column("execution_id").doUpdateSet((row) => ({
        cpu_ms: row.ref("excluded.cpu_ms"),
        sent_bytes: row.ref("excluded.sent_bytes"),
        received_bytes: row.ref("excluded.received_bytes"),
      })),
    )
    .compile();
}

/** Deletes the counters of the executions that no sandbox runs any more, and returns those executions. */
async function forgetEnded(session: Session, silent: readonly string[]): Promise<string[]> {
  const ended: string[] = [];
  await inBatches(silent, async (batch) => {
    const live = await session
      .selectFrom("sandboxes")
      .select("execution_id")
      .where("execution_id", "in", batch)
      .where("state", "in", LIVE)
      .execute();
    const still = new Set(live.map(({ execution_id }) => execution_id));
    const gone = batch.filter((id) => !still.has(id));
    await session.deleteFrom("usage_counters").where("execution_id", "in", gone).execute();
    ended.push(...gone);
  });
  return ended;
}

async function extendSpan(session: Session, { began, until }: Span): Promise<void> {
  await session
    .insertInto("usage_spans")
    .values({ began, until })
    .onConflict((conflict) =>
      conflict
        .column("began")
        .doUpdateSet((row) => ({ until: highest(row.ref("usage_spans.until"), row.ref("excluded.until")) })),
    )
    .execute();
}

function toRow(project: number, at: number, sample: Sample): FinestSampleRow {
  return {
    at,
    project,
    sandboxes: sample.sandboxes,
    starts: sample.starts,
    cpu_ms: Math.round(sample.cpuMs),
    memory_bytes: sample.memoryBytes,
    disk_bytes: sample.diskBytes,
    sent_bytes: sample.sentBytes,
    received_bytes: sample.receivedBytes,
  };
}
