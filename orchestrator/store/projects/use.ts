/**
 * The SQL that says what a project uses of its limits. As conditions of the statement that records a start or a snapshot,
 * it keeps concurrent requests within the limits.
 */

import { type RawBuilder, sql } from "kysely";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import type { Database, Session } from "../tables.ts";
import type { StartLimits } from "./limits.ts";

/** The states that count as running for a project's limits. */
export const LIVE: readonly SandboxState[] = ["starting", "running", "pausing", "snapshotting", "rewinding", "killing"];
/** A rewind starts an execution too. */
const STARTS = ["sandbox.lifecycle.created", "sandbox.lifecycle.resumed", "sandbox.lifecycle.rewound"];
const MINUTE_MS = 60_000;

type Text = RawBuilder<unknown>;

/** A start: its project and size as SQL, either values of a new row or columns of the row that is updated. */
export interface StartTerms {
  readonly project: Text;
  readonly cpuCount: Text;
  readonly memoryMB: Text;
  readonly diskSizeMB: Text;
}

export const ROW_TERMS: StartTerms = {
  project: sql.ref("sandboxes.project_id"),
  cpuCount: sql.ref("sandboxes.cpu_count"),
  memoryMB: sql.ref("sandboxes.memory_mb"),
  diskSizeMB: sql.ref("sandboxes.disk_mb"),
};

/** The project is active (or unknown, as in some tests), and was not deleted. */
function isOpen(project: Text): Text {
  return sql`not exists (select 1 from projects as owner where owner.id = ${project} and owner.status <> 'active')
    and not exists (select 1 from project_deletions as deletion where deletion.project_id = ${project})`;
}

/** The inner limit keeps the count flat however many sandboxes a project has. */
function live(project: Text, limit: number): Text {
  return sql`(select count(*) from (
    select 1 from sandboxes as other
    where other.project_id = ${project} and other.state in (${sql.join([...LIVE])})
    limit ${limit}
  ) as busy)`;
}

function promised(project: Text, column: "cpu_count" | "memory_mb" | "disk_mb"): Text {
  return sql`(select coalesce(sum(other.${sql.ref(column)}), 0) from sandboxes as other
    where other.project_id = ${project} and other.state in (${sql.join([...LIVE])}))`;
}

/**
 * Starts that succeeded in the minute before `now`: each has an event. The sequence of an event is its time in µs; after the clock was
 * set back it goes on from the former time, and what was created counts by its own time.
 */
function started(project: Text, now: number, limit: number): Text {
  return sql`(select count(*) from (
    select 1 from events as start
    where start.project_id = ${project} and start.sequence > ${(now - MINUTE_MS) * 1000}
      and start.created_at >= ${now - MINUTE_MS} and start.created_at <= ${now + MINUTE_MS}
      and start.type in (${sql.join(STARTS)})
    limit ${limit}
  ) as recent)`;
}

function starting(project: Text): Text {
  return sql`(select count(*) from sandboxes as other where other.project_id = ${project} and other.state in ('starting', 'rewinding'))`;
}

/** The project may start one more sandbox of this size. */
export function mayStart(terms: StartTerms, limits: StartLimits, now: number): RawBuilder<boolean> {
  const { project } = terms;
  const { sandboxes, startsPerMinute, totalCPU, totalMemoryMB, totalDiskMB } = limits;
  const all = [isOpen(project), sql`${live(project, sandboxes)} < ${sandboxes}`];
  if (startsPerMinute !== undefined) {
    all.push(sql`${started(project, now, startsPerMinute)} + ${starting(project)} < ${startsPerMinute}`);
  }
  if (totalCPU !== undefined) all.push(sql`${promised(project, "cpu_count")} + ${terms.cpuCount} <= ${totalCPU}`);
  if (totalMemoryMB !== undefined)
    all.push(sql`${promised(project, "memory_mb")} + ${terms.memoryMB} <= ${totalMemoryMB}`);
  if (totalDiskMB !== undefined) all.push(sql`${promised(project, "disk_mb")} + ${terms.diskSizeMB} <= ${totalDiskMB}`);
  return sql<boolean>`(${sql.join(all, sql` and `)})`;
}

function snapshotsOf(project: Text): Text {
  return sql`(select count(*) from templates as kind join builds as snap on snap.template_id = kind.id
    where kind.project_id = ${project} and kind.kind = 'snapshot' and snap.kind = 'snapshot')`;
}

/** For an update of `sandboxes`: the project of the row may have one more snapshot. */
export function maySnapshot(limit: number | undefined): RawBuilder<boolean> {
  const { project } = ROW_TERMS;
  if (limit === undefined) return sql<boolean>`(${isOpen(project)})`;
  return sql<boolean>`(${isOpen(project)} and ${snapshotsOf(project)} < ${limit})`;
}

/** What a project uses of its limits. */
export interface ProjectUse {
  readonly sandboxes: number;
  readonly startsPerMinute: number;
  readonly totalCPU: number;
  readonly totalMemoryMB: number;
  readonly totalDiskMB: number;
  /** Builds that are queued or on a node. */
  readonly builds: number;
  readonly snapshots: number;
}

/** What is left of a project that is being deleted. */
export interface Remaining {
  readonly sandboxes: number;
  readonly snapshots: number;
  readonly templates: number;
  readonly builds: number;
  /** Records of ended sandboxes. */
  readonly history: number;
}

export function projectUseStore(db: Database, now: () => number) {
  return {
    async of(projectId: string): Promise<ProjectUse> {
      const project = sql`${projectId}`;
      const building = sql`(select count(*) from templates as kind join builds as made on made.template_id = kind.id
        where kind.project_id = ${project} and made.kind = 'template' and made.status = 'building')`;
      const { rows } = await sql<Record<keyof ProjectUse, number>>`select
        ${count(project, LIVE)} as "sandboxes",
        ${started(project, now(), 1_000_000)} + ${starting(project)} as "startsPerMinute",
        ${promised(project, "cpu_count")} as "totalCPU",
        ${promised(project, "memory_mb")} as "totalMemoryMB",
        ${promised(project, "disk_mb")} as "totalDiskMB",
        ${building} as "builds",
        ${snapshotsOf(project)} as "snapshots"`.execute(db);
      const [row] = rows;
      if (row === undefined) throw new Error("a select without a table has one row");
      return row;
    },

    /** When the oldest start of the last minute was; undefined: there was none. */
    async oldestStart(projectId: string): Promise<number | undefined> {
      const at = now();
      const row = await db
        .selectFrom("events")
        .select("created_at")
        .where("project_id", "=", projectId)
        .where("sequence", ">", (at - MINUTE_MS) * 1000)
        .where("created_at", ">=", at - MINUTE_MS)
        .where("created_at", "<=", at + MINUTE_MS)
        .where("type", "in", STARTS)
        .orderBy("sequence")
        .limit(1)
        .executeTakeFirst();
      return row?.created_at;
    },

    remaining: (projectId: string): Promise<Remaining> => remaining(db, projectId),
  };
}

export async function remaining(session: Session, projectId: string): Promise<Remaining> {
  const project = sql`${projectId}`;
  const kind = (text: "template" | "snapshot") =>
    sql`(select count(*) from templates as owned where owned.project_id = ${project} and owned.kind = ${text})`;
  const { rows } = await sql<Remaining>`select
    (select count(*) from sandboxes as other where other.project_id = ${project} and other.state <> 'gone') as "sandboxes",
    (select count(*) from sandboxes as other where other.project_id = ${project} and other.state = 'gone') as "history",
    ${kind("snapshot")} as "snapshots",
    ${kind("template")} as "templates",
    (select count(*) from templates as owned join builds as made on made.template_id = owned.id
      where owned.project_id = ${project} and made.kind = 'template') as "builds"`.execute(session);
  const [row] = rows;
  if (row === undefined) throw new Error("a select without a table has one row");
  return row;
}

function count(project: Text, states: readonly SandboxState[]): Text {
  return sql`(select count(*) from sandboxes as other
    where other.project_id = ${project} and other.state in (${sql.join([...states])}))`;
}
