/** Builds of templates on this node, their owners and their logs. The only SQL on those tables, apart from migrations. */

import type { BuildLogEntry, BuildState } from "../../shared/agent-api/build-shapes.ts";
import { defined } from "../../shared/defined.ts";
import type { Sqlite } from "./database/database.ts";

export type BuildResult = NonNullable<BuildState["result"]>;
type BuildReason = NonNullable<BuildState["reason"]>;

export interface Build {
  readonly id: string;
  readonly templateId: string;
  /** `deleted`: the build is removed; its row stays, so that the build does not begin again. */
  readonly state: "building" | "ready" | "error" | "deleted";
  readonly reason: BuildReason | undefined;
  readonly result: BuildResult | undefined;
  readonly snapshotId: string | undefined;
  /** The project that owns its template; undefined: an earlier version began it. */
  readonly projectId: string | undefined;
  /** Unix milliseconds. */
  readonly changedAt: number;
}

export interface BuildStore {
  /** Called before any other step of the build, so that a crash from here on leaves a row. */
  begin(id: string, templateId: string, at: number, projectId?: string): void;
  /** Notes the project of a build that has none. */
  own(id: string, projectId: string): void;
  /** Called before the snapshot is taken. */
  intendSnapshot(id: string, snapshotId: string): void;
  succeed(id: string, result: BuildResult, at: number): void;
  fail(id: string, reason: BuildReason, at: number): void;
  /** May name an unknown build. Deletes its log too. */
  remove(id: string, at: number): void;
  get(id: string): Build | undefined;
  all(): Build[];
  log(id: string, entries: readonly BuildLogEntry[]): void;
  entries(id: string, offset: number, limit: number): BuildLogEntry[];
  /** Deletes the rows of deleted and failed builds from before this time, unix ms. */
  prune(before: number): void;
}

interface Row {
  id: string;
  template_id: string;
  state: Build["state"];
  reason: string | null;
  reason_step: string | null;
  result: string | null;
  snapshot_id: string | null;
  project_id: string | null;
  changed_at: number;
}

interface EntryRow {
  at: number;
  level: BuildLogEntry["level"];
  message: string;
  step: string | null;
}

export function buildStore(database: Sqlite): BuildStore {
  const begin = database.prepare<[string, string, number]>(
    "insert into builds values (?, ?, 'building', null, null, null, null, ?)",
  );
  const intend = database.prepare<[string, string]>("update builds set snapshot_id = ? where id = ?");
  const succeed = database.prepare<[string, number, string]>(
    "update builds set state = 'ready', result = ?, changed_at = ? where id = ?",
  );
  const fail = database.prepare<[string, string | null, number, string]>(
    "update builds set state = 'error', reason = ?, reason_step = ?, snapshot_id = null, changed_at = ? where id = ?",
  );
  const remove = database.prepare<[string, number]>(
    "insert or replace into builds values (?, '', 'deleted', null, null, null, null, ?)",
  );
  const own = database.prepare<[string, string]>("insert into build_owners values (?, ?) on conflict do nothing");
  const owned = "select builds.*, project_id from builds left join build_owners on build_owners.build_id = builds.id";
  const get = database.prepare<[string], Row>(`${owned} where id = ?`);
  const all = database.prepare<[], Row>(owned);
  const insertEntry = database.prepare<[string, string, number, string, string, string | null]>(
    `insert into build_logs values (?, (select coalesce(max(seq) + 1, 0) from build_logs where build_id = ?), ?, ?, ?, ?)`,
  );
  const entries = database.prepare<[string, number, number], EntryRow>(
    "select at, level, message, step from build_logs where build_id = ? and seq >= ? order by seq limit ?",
  );
  const disown = database.prepare<[string]>("delete from build_owners where build_id = ?");
  const removeLog = database.prepare<[string]>("delete from build_logs where build_id = ?");
  const pruneRows = database.prepare<[number]>(
    "delete from builds where changed_at < ? and state in ('deleted', 'error')",
  );
  const pruneOwners = database.prepare<[]>("delete from build_owners where build_id not in (select id from builds)");
  const pruneLogs = database.prepare<[]>("delete from build_logs where build_id not in (select id from builds)");

  return {
    begin: database.transaction((id: string, templateId: string, at: number, projectId?: string) => {
      begin.run(id, templateId, at);
      if (projectId !== undefined) own.run(id, projectId);
    }),
    own: (id, projectId) => void own.run(id, projectId),
    intendSnapshot: (id, snapshotId) => void intend.run(snapshotId, id),
    succeed: (id, result, at) => void succeed.run(JSON.stringify(result), at, id),
    fail: (id, { message, step }, at) => void fail.run(message, step ?? null, at, id),
    remove: database.transaction((id: string, at: number) => {
      remove.run(id, at);
      disown.run(id);
      removeLog.run(id);
    }),
    get(id) {
      const row = get.get(id);
      return row === undefined ? undefined : toBuild(row);
    },
    all: () => all.all().map(toBuild),
    log: database.transaction((id: string, lines: readonly BuildLogEntry[]) => {
      for (const { at, level, message, step } of lines) insertEntry.run(id, id, at, level, message, step ?? null);
    }),
    entries: (id, offset, limit) =>
      entries.all(id, offset, limit).map(({ step, ...entry }) => (step === null ? entry : { ...entry, step })),
    prune: database.transaction((before: number) => {
      pruneRows.run(before);
      pruneLogs.run();
      pruneOwners.run();
    }),
  };
}

function toBuild(row: Row): Build {
  const reason =
    row.reason === null ? undefined : { message: row.reason, ...defined({ step: row.reason_step ?? undefined }) };
  return {
    id: row.id,
    templateId: row.template_id,
    state: row.state,
    reason,
    result: row.result === null ? undefined : (JSON.parse(row.result) as BuildResult),
    snapshotId: row.snapshot_id ?? undefined,
    projectId: row.project_id ?? undefined,
    changedAt: row.changed_at,
  };
}
