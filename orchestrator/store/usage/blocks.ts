/** SQL on packed samples: a project's old samples become one row for each block of time. */

import type { Session } from "../tables.ts";
import { byBlock, merged, pack, unpack } from "./packed.ts";
import type { StoredSample } from "./row.ts";
import { SAMPLE } from "./rows.ts";
import { STORED_STEPS, slotOf } from "./steps.ts";

interface Range {
  readonly project: number;
  readonly step: number;
  /** Unix seconds; `end` is not included. */
  readonly start: number;
  readonly end: number;
}

/** Packs the samples of one project in the blocks that are over. No sample that is still to be rolled up may be in them. */
export async function packOld(session: Session, project: number, until: number): Promise<void> {
  for (const { seconds: step, block } of STORED_STEPS) {
    if (block === undefined) continue;
    const end = slotOf(until, block);
    const rows = await rowsOf(session, { project, step, start: 0, end });
    if (rows.length === 0) continue;
    for (const [at, samples] of byBlock(rows, block)) {
      const before = await packedSamples(session, { project, step, start: at, end: at + block });
      const packed = pack(merged([...before, ...samples]), { at, step });
      await session
        .insertInto("usage_blocks")
        .values({ project, step, at, samples: packed })
        .onConflict((conflict) => conflict.columns(["project", "step", "at"]).doUpdateSet({ samples: packed }))
        .execute();
    }
    await session
      .deleteFrom("usage_samples")
      .where("project", "=", project)
      .where("step", "=", step)
      .where("at", "<", end)
      .execute();
  }
}

/** Oldest first. */
export async function packedSamples(session: Session, { project, step, start, end }: Range): Promise<StoredSample[]> {
  const block = STORED_STEPS.find(({ seconds }) => seconds === step)?.block;
  if (block === undefined) return [];
  const blocks = await session
    .selectFrom("usage_blocks")
    .select(["at", "samples"])
    .where("project", "=", project)
    .where("step", "=", step)
    .where("at", ">=", slotOf(start, block))
    .where("at", "<", end)
    .orderBy("at")
    .execute();
  const samples = blocks.flatMap((row) => unpack(row.samples, { at: row.at, step }));
  return samples.filter(({ at }) => at >= start && at < end);
}

/** The samples that are not packed. */
export async function rowsOf(session: Session, { project, step, start, end }: Range): Promise<StoredSample[]> {
  return session
    .selectFrom("usage_samples")
    .select(SAMPLE)
    .where("project", "=", project)
    .where("step", "=", step)
    .where("at", ">=", start)
    .where("at", "<", end)
    .execute();
}
