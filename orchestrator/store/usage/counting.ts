/** Counts what projects use in the moment of a sample. */

import type { Database, Session } from "../tables.ts";
import { compiledForRows, inBatches } from "./batches.ts";
import { type Marks, setMark } from "./roll-up.ts";
import { NOTHING, type Sample, type Used } from "./sample.ts";

const RUNNING = ["running", "pausing", "snapshotting", "rewinding"] as const;
const STARTED = ["sandbox.lifecycle.created", "sandbox.lifecycle.resumed", "sandbox.lifecycle.rewound"] as const;
const EVENTS = "events";
const NUMBERS = "projects";

/** Running sandboxes, starts since the last sample, and `used`, by project. */
export async function countAll(
  session: Session,
  used: ReadonlyMap<string, Used>,
  marks: Marks,
): Promise<Map<string, Sample>> {
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
  const seen = marks.get(EVENTS);
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
  if (seen === undefined || until > seen) await setMark(session, EVENTS, until);
  return samples;
}

interface NumberedProject {
  readonly id: string;
  readonly publicId: string;
  readonly number: number;
}

/** Finds the numbers of projects, and gives numbers to those that have none. A project that was deleted is not among them. */
export function projectsOf(db: Database) {
  const selection = compiledForRows((count) =>
    db
      .selectFrom("projects")
      .leftJoin("usage_projects", "usage_projects.project_id", "projects.id")
      .select(["projects.id", "projects.public_id", "usage_projects.number"])
      .where(
        "projects.id",
        "in",
        Array.from({ length: count }, () => ""),
      )
      .compile(),
  );

  return async (session: Session, ids: readonly string[], marks: Marks): Promise<NumberedProject[]> => {
    const found: NumberedProject[] = [];
    const missing: Omit<NumberedProject, "number">[] = [];
    await inBatches(ids, async (batch) => {
      const { rows } = await session.executeQuery(selection(batch.length, batch));
      for (const { id, public_id: publicId, number } of rows) {
        if (number === null) missing.push({ id, publicId });
        else found.push({ id, publicId, number });
      }
    });
    if (missing.length === 0) return found;
    // Never a number of a deleted project, whose last samples may still be there.
    const first = (marks.get(NUMBERS) ?? 0) + 1;
    const numbered = missing.map((project, index) => ({ ...project, number: first + index }));
    await inBatches(numbered, (batch) =>
      session
        .insertInto("usage_projects")
        .values(batch.map(({ id, number }) => ({ project_id: id, number })))
        .execute(),
    );
    await setMark(session, NUMBERS, first + missing.length - 1);
    return [...found, ...numbered];
  };
}
