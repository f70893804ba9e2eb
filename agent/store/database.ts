/** The agent's SQLite file: migrations and pragmas. Only this folder imports better-sqlite3. */

import Database from "better-sqlite3";
import { isSealed, type Seal } from "../../shared/program/seal.ts";

export type Sqlite = Database.Database;

/** Text is SQL. A step runs in a transaction, except one under `alone`, which must run outside of any. */
type Step = string | ((database: Sqlite, sealing: Seal) => void) | { readonly alone: (database: Sqlite) => unknown };

/** New steps are appended and old ones never edited: `user_version` counts the steps that have run. */
const MIGRATIONS: readonly Step[] = [
  `create table containers (
     id text primary key,
     slot integer not null unique,
     pid integer not null,
     control_token text not null,
     template_id text not null,
     build_id text not null,
     image text not null,
     cpu_count integer not null,
     memory_mb integer not null,
     disk_size_mb integer not null,
     runtime text not null,
     upper_directory text,
     created_at integer not null
   ) strict;
   create table executions (
     id text primary key,
     sandbox_id text not null,
     container_id text not null unique,
     internet integer not null,
     end_at integer not null,
     started_at integer not null,
     warm integer not null,
     -- 0 until the sandbox was initialised: found so after a crash it is removed.
     running integer not null default 0
   ) strict;
   create table stopped (
     id text primary key,
     at integer not null
   ) strict;
   create table exits (
     id text primary key,
     sandbox_id text not null,
     reason text not null,
     exit_code integer,
     at integer not null
   ) strict;
   create table samples (
     execution_id text not null,
     at integer not null,
     cpu_count integer not null,
     cpu_used_pct real not null,
     mem_used integer not null,
     mem_total integer not null,
     mem_cache integer not null,
     disk_used integer not null,
     disk_total integer not null,
     primary key (execution_id, at)
   ) strict, without rowid;
   create index samples_at on samples (at);
   create table logs (
     execution_id text not null,
     seq integer not null,
     at integer not null,
     level integer not null,
     message text not null,
     fields text not null,
     primary key (execution_id, seq)
   ) strict, without rowid;
   create index logs_at on logs (at);`,
  `alter table executions add column on_timeout text not null default 'kill';
   alter table executions add column on_timeout_memory integer not null default 1;
   create table snapshots (
     id text primary key,
     kind text not null,
     state text not null,
     sandbox_id text not null,
     execution_id text not null,
     container_id text not null,
     -- What is needed to run the container again, as JSON: read and written whole.
     disk text not null,
     image text,
     memory integer not null,
     memory_bytes integer not null,
     disk_bytes integer not null,
     captured_at integer not null
   ) strict;`,
  // Stores the whole policy as JSON; before, `internet` was the only part of a policy.
  `alter table executions add column egress text not null default '{}';
   update executions set egress = json_object('allowRanges', json('[]'), 'allowDomains', json('[]'),
     'denyRanges', iif(internet = 1, json('[]'), json('["0.0.0.0/0"]')), 'rules', json('[]'));
   alter table executions drop column internet;
   create table network_log (
     execution_id text not null,
     seq integer not null,
     at integer not null,
     protocol text not null,
     address text not null,
     port integer not null,
     name text,
     verdict text not null,
     rule text not null,
     count integer not null,
     sent_bytes integer not null,
     received_bytes integer not null,
     primary key (execution_id, seq)
   ) strict, without rowid;
   create index network_log_at on network_log (at);
   create table network_suppressed (
     execution_id text primary key,
     count integer not null,
     at integer not null
   ) strict;`,
  `create table builds (
     id text primary key,
     template_id text not null,
     -- Deleted ones are remembered for a while: a start that arrives after the deletion must not begin.
     state text not null,
     reason text,
     reason_step text,
     result text,
     -- From before it is taken: also a snapshot of a build that failed is found again.
     snapshot_id text,
     changed_at integer not null
   ) strict;
   create table build_logs (
     build_id text not null,
     seq integer not null,
     at integer not null,
     level text not null,
     message text not null,
     step text,
     primary key (build_id, seq)
   ) strict, without rowid;
   create table layers (
     key text primary key,
     image text not null,
     bytes integer not null,
     used_at integer not null
   ) strict;`,
  // Rows under execution ids have no sandbox; their age removes them.
  `alter table network_log rename column execution_id to sandbox_id;
   alter table network_suppressed rename column execution_id to sandbox_id;`,
  sealPolicies,
  { alone: forgetRemoved },
  // Null: the row is of an agent version that did not record it.
  `alter table executions add column project_id text;
   alter table snapshots add column project_id text;`,
  sealControlTokens,
  { alone: forgetRemoved },
  "alter table snapshots add column resuming integer not null default 0;",
  // A snapshot was called a capture.
  `alter table snapshots rename column captured_at to taken_at;
   update snapshots set state = 'taking' where state = 'capturing';`,
  `alter table exits add column detail text;
   update exits set reason = 'out_of_memory' where reason = 'oom';`,
  // Null: the layer of a base, or of an agent version whose layers are not used any more.
  "alter table layers add column context text;",
  // The store that this node serves, and the orchestrator's rows of its sandboxes, as the orchestrator sent them.
  `create table served_store (
     one integer primary key check (one = 1),
     store_id text not null,
     opening text not null,
     mark integer not null
   ) strict;
   alter table executions add column record text;
   alter table snapshots add column record text;
   alter table snapshots add column held_since integer;
   alter table snapshots add column held_until integer;
   alter table snapshots add column held_reason text;`,
  // Containers and snapshots that a lost database named; until, in unix milliseconds: when they may be deleted.
  `create table remains (
     kind text not null,
     id text not null,
     until integer not null,
     primary key (kind, id)
   ) strict, without rowid;`,
];

/** A policy holds the headers of its rules and the password of its proxy. */
function sealPolicies(database: Sqlite, sealing: Seal): void {
  const rows = database.prepare<[], { id: string; egress: string }>("select id, egress from executions").all();
  const seal = database.prepare<[string, string]>("update executions set egress = ? where id = ?");
  for (const { id, egress } of rows) if (!isSealed(egress)) seal.run(sealing.close(egress, egressContext(id)), id);
}

/** The holder of an envd's control token may initialise that sandbox again. A paused one has it in its disk's record. */
function sealControlTokens(database: Sqlite, sealing: Seal): void {
  const tokens = database.prepare<[], { id: string; token: string }>("select id, control_token token from containers");
  const setToken = database.prepare<[string, string]>("update containers set control_token = ? where id = ?");
  for (const { id, token } of tokens.all())
    if (!isSealed(token)) setToken.run(sealing.close(token, controlContext(id)), id);

  const disks = database.prepare<[], { id: string; token: string | null }>(
    "select id, json_extract(disk, '$.controlToken') token from snapshots",
  );
  const setDisk = database.prepare<[string, string]>(
    "update snapshots set disk = json_set(disk, '$.controlToken', ?) where id = ?",
  );
  for (const { id, token } of disks.all())
    if (token !== null && !isSealed(token)) setDisk.run(sealing.close(token, controlContext(id)), id);
}

/**
 * Removes data that was overwritten or deleted before, secrets among it, from the file's free pages and its log. False: another
 * program reads the file, so its log is still there.
 */
export function forgetRemoved(database: Sqlite): boolean {
  database.exec("vacuum");
  const [checkpoint] = database.pragma("wal_checkpoint(truncate)") as { busy: number }[];
  return checkpoint?.busy === 0;
}

/** Context of a sealed policy. */
export function egressContext(executionId: string): string {
  return `${executionId} egress`;
}

/** Context of a sealed control token, by the id of its row: a container, or a snapshot with its disk. */
export function controlContext(id: string): string {
  return `${id} control token`;
}

/** `path` is a file (made with mode 0600 by the umask of the program) or ":memory:". */
export function openDatabase(path: string, sealing: Seal): Sqlite {
  const database = new Database(path, { timeout: 5_000 });
  database.pragma("journal_mode = WAL");
  // A power cut ends the containers too, so lost rows do not matter; a crash of the program loses nothing.
  database.pragma("synchronous = NORMAL");
  const done = database.pragma("user_version", { simple: true }) as number;
  for (const [index, step] of MIGRATIONS.entries()) if (index >= done) migrate(database, sealing, { index, step });
  return database;
}

function migrate(database: Sqlite, sealing: Seal, { index, step }: { readonly index: number; readonly step: Step }) {
  const count = () => database.pragma(`user_version = ${index + 1}`);
  if (typeof step === "object") {
    step.alone(database);
    count();
    return;
  }
  database.transaction(() => {
    if (typeof step === "string") database.exec(step);
    else step(database, sealing);
    count();
  })();
}
