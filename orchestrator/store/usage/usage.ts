/** Samples of what projects use: written every few seconds, rolled up into longer steps, deleted when they are old. */

import { lock, locks } from "../locks.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { packedSamples, rowsOf } from "./blocks.ts";
import { type Heard, usageCounters } from "./counters.ts";
import { countAll, projectsOf } from "./counting.ts";
import { allMarks, type Marks, mark, prune, rolled, rollUp } from "./roll-up.ts";
import type { FinestSampleRow, StoredSample } from "./row.ts";
import { finestSelection, highest, sampleInsertion } from "./rows.ts";
import { gauges, type Sample } from "./sample.ts";
import { FINEST, STORED_STEPS, slotOf } from "./steps.ts";

export interface NewSamples {
  /** Beginning of the step, Unix seconds. */
  readonly at: number;
  /** Steps before it that this process should have sampled, and was too busy to. */
  readonly missed: readonly number[];
  /** Beginning of the time in which this process has taken samples. */
  readonly began: number;
  /** By id of the execution: what this process has heard since it added a step last. */
  readonly heard: ReadonlyMap<string, Heard>;
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
  const counters = usageCounters(db);
  const findProjects = projectsOf(db);
  let pruned = 0;

  return {
    /**
     * Adds a step to the samples of every project that uses something, in one transaction with everything that it was
     * counted from: a crash counts nothing twice and forgets nothing, and neither do several orchestrators. Returns the
     * samples that it added.
     */
    async add(samples: NewSamples): Promise<readonly ProjectSample[]> {
      return inTransaction(db, async (session) => {
        await lock(session, locks.usage);
        const marks = await allMarks(session);
        const used = await counters.count(session, samples.heard, samples.at * 1000);
        const counted = await countAll(session, used, marks);
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
        await counters.forget(session, samples.at * 1000);
        await extendSpan(session, { began: samples.began, until: samples.at + FINEST });
        await rollUp(session, samples.at, marks);
        if (samples.at - samples.began >= SETTLED_S) {
          pruned = await prune(session, { now: samples.at, after: pruned });
        }
        return added.map(({ publicId, sample }) => ({ publicId, sample }));
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
