/**
 * Queries of what projects used, in a database with a year of samples of a thousand projects, as the platform keeps it: the
 * steps and lifetimes of orchestrator/store/usage/steps.ts. Needs no sandbox.
 */

import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import SQLite from "better-sqlite3";
import { openDatabase } from "../../orchestrator/store/database.ts";
import { createStore } from "../../orchestrator/store/store.ts";
import { STORED_STEPS, slotOf } from "../../orchestrator/store/usage/steps.ts";
import { createUsageHandlers } from "../../orchestrator/usage/handlers.ts";
import { createSeal } from "../../shared/program/seal.ts";
import { type Bench, timed } from "./bench.ts";
import { type Row, row, summarise } from "./numbers.ts";

const PROJECTS = 1_000;
const QUICK_PROJECTS = 20;
const QUERIES = 200;
const LIMIT_MS = 50;
const HOUR = 3_600;
const DAY = 24 * HOUR;
const RANGES = { hour: HOUR - 10, "6 hours": 6 * HOUR - 10, day: DAY - 10, week: 7 * DAY - 10, "90 days": 90 * DAY };

export async function usage({ quick, say }: Bench): Promise<readonly Row[]> {
  const folder = await mkdtemp(join(tmpdir(), "svc-bench-usage-"));
  try {
    return await measured(join(folder, "svc.db"), quick ? QUICK_PROJECTS : PROJECTS, say);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function measured(path: string, count: number, say: Bench["say"]): Promise<Row[]> {
  const seal = createSeal("a key of the bench", "none");
  const opened = await openDatabase(path, seal);
  try {
    const store = createStore(opened.database, Date.now, seal);
    const projects = [];
    for (let index = 0; index < count; index++) projects.push(await store.projects.create(`project ${index}`));
    const now = slotOf(Date.now() / 1000, 900);
    fill(path, { projectIds: projects.map(({ id }) => id), now });
    const bytes = (await stat(path)).size;
    say(`usage: ${count} projects, ${Math.round(bytes / 1e6)} MB`);
    const handlers = createUsageHandlers({ store: store.usage, now: () => now * 1000 });
    const rows: Row[] = [];
    for (const [name, length] of Object.entries(RANGES)) {
      const samples: number[] = [];
      for (let query = 0; query < QUERIES; query++) {
        const project = projects[(query * 7) % projects.length];
        if (project === undefined) continue;
        const request = { params: { teamID: project.id }, query: { start: now - length, end: now } };
        const ask = async () =>
          JSON.stringify(await handlers.teamMetrics(request as never, { caller: project } as never));
        samples.push(await timed(ask));
      }
      const ours = summarise(samples);
      const budgets = [{ says: `p99 ≤ ${LIMIT_MS} ms`, value: ours.p99, limit: LIMIT_MS, better: "less" as const }];
      const note = `${count} projects, database of ${Math.round(bytes / 1e6)} MB`;
      rows.push(row({ name: `usage of a project, ${name}`, unit: "ms", ours, budgets, note }));
    }
    // What every round costs while all projects use something.
    const used = new Map(
      projects.map(({ id }) => [id, { cpuMs: 9, sentBytes: 9, receivedBytes: 9, memoryBytes: 9, diskBytes: 9 }]),
    );
    const rounds: number[] = [];
    for (let at = now; at < now + 200; at += 5) {
      const sample = { at, missed: [], began: now - 90 * DAY, used, counters: new Map(), ended: [] };
      rounds.push(await timed(() => store.usage.add(sample)));
    }
    rows.push(row({ name: "sample of all projects", unit: "ms", ours: summarise(rounds), budgets: [] }));
    return rows;
  } finally {
    await opened.close();
  }
}

/** Every sample that is kept after a year. Written as a bulk load: a year of rounds would take hours. */
function fill(
  path: string,
  { projectIds, now }: { readonly projectIds: readonly string[]; readonly now: number },
): void {
  const database = new SQLite(path);
  try {
    database.pragma("synchronous = OFF");
    const number = database.prepare("insert into usage_projects values (?, ?)");
    const sample = database.prepare("insert into usage_samples values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    const all = database.transaction((id: string, project: number) => {
      number.run(id, project);
      for (const { seconds, keptFor } of STORED_STEPS) {
        for (let at = now - keptFor; at < now; at += seconds) {
          const some = (at / 5 + project * 7) % 97;
          sample.run(project, seconds, at, some, some % 5, some * 31, some * 4e7, some * 9e7, some * 1e5, some * 3e5);
        }
      }
    });
    for (const [index, id] of projectIds.entries()) all(id, index + 1);
    database.prepare("insert into usage_spans values (?, ?)").run(now - 90 * DAY, now);
    const mark = database.prepare("insert or replace into usage_marks values (?, ?)");
    for (const { seconds } of STORED_STEPS) mark.run(`rolled ${seconds}`, now);
    database.pragma("wal_checkpoint(truncate)");
  } finally {
    database.close();
  }
}
