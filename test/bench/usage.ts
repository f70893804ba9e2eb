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
import { byBlock, pack } from "../../orchestrator/store/usage/packed.ts";
import type { StoredSample } from "../../orchestrator/store/usage/row.ts";
import { SAMPLE } from "../../orchestrator/store/usage/rows.ts";
import { STORED_STEPS, slotOf } from "../../orchestrator/store/usage/steps.ts";
import { createUsageHandlers } from "../../orchestrator/usage/handlers.ts";
import { createSeal } from "../../shared/program/sealing/seal.ts";
import { type Bench, timed } from "./bench.ts";
import { type Row, row, summarise } from "./numbers.ts";

const PROJECTS = 1_000;
const QUICK_PROJECTS = 20;
const QUERIES = 200;
/** Ten minutes: every step but the coarsest is rolled up. */
const ROUNDS = 120;
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
  const opened = await openDatabase(path);
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
    // What every round costs while all projects use something, each with one sandbox.
    const counted = { cpuMs: 9, sentBytes: 9, receivedBytes: 9 };
    const use = { counted, grown: counted, memoryBytes: 9, diskBytes: 9 };
    const rounds: number[] = [];
    for (let at = now; at < now + 5 * ROUNDS; at += 5) {
      const told = { since: (at - 5) * 1000, at: at * 1000 };
      const heard = new Map(projects.map(({ id }) => [`execution of ${id}`, { projectId: id, ...use, ...told }]));
      const sample = { at, missed: [], began: now - 90 * DAY, heard };
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
    const columns = `${SAMPLE.join(", ")}, project`;
    const finest = database.prepare(`insert into usage_finest (${columns}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`);
    const sample = database.prepare(
      `insert into usage_samples (${columns}, step) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    const block = database.prepare("insert into usage_blocks values (?, ?, ?, ?)");
    const all = database.transaction((id: string, project: number) => {
      number.run(id, project);
      for (const step of STORED_STEPS) {
        const samples: StoredSample[] = [];
        for (let at = now - step.keptFor; at < now; at += step.seconds) samples.push(sampleAt(at, project));
        const until = step.block === undefined ? 0 : slotOf(now, step.block);
        for (const [at, some] of byBlock(
          samples.filter((one) => one.at < until),
          step.block ?? 0,
        )) {
          block.run(project, step.seconds, at, pack(some, { at, step: step.seconds }));
        }
        for (const one of samples.filter((one) => one.at >= until)) {
          const values = [...SAMPLE.map((name) => one[name]), project];
          if (step.block === undefined) finest.run(values);
          else sample.run(values, step.seconds);
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

function sampleAt(at: number, project: number): StoredSample {
  const some = (at / 5 + project * 7) % 97;
  return {
    at,
    sandboxes: some,
    starts: some % 5,
    cpu_ms: some * 31,
    memory_bytes: some * 4e7,
    disk_bytes: some * 9e7,
    sent_bytes: some * 1e5,
    received_bytes: some * 3e5,
  };
}
