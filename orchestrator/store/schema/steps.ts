/**
 * Numbered steps of the schema, forward only. A published step is never edited; the next one corrects it. During an upgrade
 * two versions use the database at the same time, so a step only expands: it makes tables, indexes, and columns that may be
 * absent. What an earlier version needs is taken away in a step of its own, in a later version, whose name ends with CONTRACTS.
 */

import { type Kysely, type Migration, type MigrationProvider, SqliteAdapter, sql } from "kysely";
import { AppError } from "../../../shared/http/errors.ts";
import type { Database } from "../tables.ts";
import { addTables, createTables } from "./tables.ts";

const FIRST = "schema-0001";

/** The authority that signs the certificates of machines, the tokens they join with, and the keys of nodes that joined. */
const MACHINES = `
  create table authorities (
    id text primary key, certificate text not null, private_key text not null, created_at bigint not null
  );
  create table join_tokens (
    id text primary key, hash text not null, created_at bigint not null, expires_at bigint not null,
    used_at bigint, node_id text, revoked_at bigint
  );
  create table members (
    node_id text primary key, key_digest text not null, join_token_id text not null, joined_at bigint not null
  )`;

/** Which orchestrators use the database, who does which rounds, and what they do with which sandboxes. */
const MEMBERSHIP = `
  create table orchestrators (
    id text primary key, epoch bigint not null, version text not null, expires_at bigint not null
  );
  create table leases (
    name text primary key, owner text not null, epoch bigint not null, expires_at bigint not null
  );
  -- No foreign keys: an owner that has lapsed is forgotten before its work is taken over.
  create table operations (
    id text primary key, sandbox_id text not null, aim text not null, owner text not null, epoch bigint not null,
    begun_at bigint not null, ended_at bigint, failure text
  );
  create unique index operations_unfinished on operations (sandbox_id) where ended_at is null`;

/** What orchestrators tell each other about what they remember. */
const CHANGES = `
  create table changes (
    id text primary key, kind text not null, subject text not null, origin text not null, at bigint not null,
    txid bigint not null
  );
  create index changes_at on changes (at);
  create index changes_txid on changes (txid);
  create table change_receipts (
    change_id text not null references changes (id) on delete cascade, member_id text not null,
    constraint change_receipts_pk primary key (change_id, member_id)
  )`;

/** What several orchestrators must know of executions, so that each report counts once. */
const SHARED_USE = `
  alter table usage_counters add column project_id text;
  alter table usage_counters add column memory_bytes bigint;
  alter table usage_counters add column disk_bytes bigint;
  alter table usage_counters add column heard_at bigint`;

/** Who has the registry's credentials of a build, in its memory. */
const BUILD_OWNERS = `
  alter table builds add column owner text;
  alter table builds add column owner_epoch bigint`;

/** Which orchestrator is about to end an expired sandbox: for which end, and how long the others leave it alone. */
const EXPIRY_CLAIMS = `
  alter table sandboxes add column expiring_end_at bigint;
  alter table sandboxes add column expiring_until bigint`;

/** Snapshots in the blob store. No foreign key: a row outlives its snapshot. */
const BLOBS = `
  create table blob_refs (
    snapshot_id text not null, ref text not null, project_id text not null, bytes bigint not null,
    stored_at bigint not null, dropped_at bigint,
    constraint blob_refs_pk primary key (snapshot_id, ref)
  );
  -- Days, counted from 1970, on which the store's garbage was collected.
  create table blob_sweeps (
    day bigint primary key, claimed_at bigint not null
  )`;

/** What a join token makes of a machine, and the keys of edges that joined. */
const EDGES = `
  alter table join_tokens add column kind text;
  alter table join_tokens add column edge_id text;
  create table edges (
    id text primary key, key_digest text not null, join_token_id text not null, joined_at bigint not null
  );
  create unique index edges_key on edges (key_digest)`;

/** Drains of nodes. No foreign keys: a drain tells what became of its sandboxes when they are forgotten, and of a node that was removed. */
const DRAINS = `
  create table drains (
    node_id text primary key, begun_at bigint not null, deadline_at bigint, running text not null,
    at_deadline text not null, at_once integer not null, ended_at bigint
  );
  create table drain_moves (
    node_id text not null, sandbox_id text not null, was text not null, state text not null, end_at bigint not null,
    to_node text, reason text, stall_ms bigint, changed_at bigint not null,
    constraint drain_moves_pk primary key (node_id, sandbox_id)
  );
  create index drain_moves_sandbox on drain_moves (sandbox_id)`;

/**
 * What one orchestrator learns from a node's report and the others need: why it refuses the store, which differences between
 * its reports and the records were seen first at what time, which sandboxes it holds, and what was given up. What
 * orchestrators must agree about is in their rows.
 */
const SHARED_REPORTS = `
  alter table nodes add column refusal text;
  alter table nodes add column suspicions text;
  create table held_executions (
    execution_id text primary key, sandbox_id text not null, node_id text not null, held_at bigint not null
  );
  create index held_executions_node on held_executions (node_id);
  create table given_up (id text primary key, at bigint not null);
  alter table orchestrators add column settings text`;

/** Who is logged in to the console, and the links that log in once. They end with their key. */
const CONSOLE_SESSIONS = `
  create table console_sessions (
    hash text primary key, kind text not null, key_id text references api_keys (id) on delete cascade,
    admin_digest text, created_at bigint not null, used_at bigint not null, expires_at bigint not null
  );
  create index console_sessions_key on console_sessions (key_id)`;

/** Rewinds under way, and where forks come from: what a sandbox may be rewound to. */
const REWINDS = `
  alter table sandboxes add column rewind_execution_id text;
  alter table sandboxes add column rewind_snapshot_id text;
  alter table sandboxes add column rewind_memory integer;
  alter table sandboxes add column rewind_from text;
  alter table sandboxes add column rewind_s bigint;
  alter table sandboxes add column forked_from text;
  alter table sandboxes add column forked_at bigint;
  create index sandboxes_rewind on sandboxes (rewind_execution_id) where rewind_execution_id is not null`;

/** How many containers a template's owner wants to be kept warm. */
const WARM_POOLS = `
  alter table templates add column warm_pool bigint;
  create index templates_warm_pool on templates (warm_pool) where warm_pool is not null`;

/** Sessions of people who have logged in by name, at a provider of log-ins. */
const PEOPLE = `
  alter table console_sessions add column person text`;

/** The authority that is to take the place of the one in force, and which authorities machines trust. */
const AUTHORITIES = `
  alter table authorities add column signs_since bigint;
  alter table members add column trusts text;
  alter table members add column certified_by text;
  alter table members add column asked_at bigint;
  alter table edges add column trusts text;
  alter table edges add column certified_by text;
  alter table edges add column asked_at bigint`;

/**
 * PostgreSQL answers from an index alone only for rows that a vacuum has seen since they changed, and by default it waits for
 * the change of a fifth of them. A sandbox's row changes several times in its life, and lists are counted from the index.
 */
async function vacuumSandboxesSooner(db: Kysely<unknown>): Promise<void> {
  if (db.getExecutor().adapter instanceof SqliteAdapter) return;
  const share = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02";
  await sql.raw(`alter table sandboxes set (${share})`).execute(db);
}
/** Labels that a project's nodes must have, as JSON; since when a node counts as lost. */
const NODES = `
  alter table projects add column node_labels text;
  alter table nodes add column lost_at bigint`;

/** What happened to nodes, and the starts on them that each orchestrator has asked for. No foreign keys: a node's events outlive it. */
const NODE_EVENTS = `
  create table node_events (
    id text primary key, node_id text not null, at bigint not null, kind text not null, detail text
  );
  create index node_events_node on node_events (node_id, id);
  create table node_starts (
    node_id text not null, owner text not null, succeeded bigint not null, failed bigint not null,
    errors text not null, at bigint not null,
    constraint node_starts_pk primary key (node_id, owner)
  )`;

const steps: Readonly<Record<string, Migration>> = {
  [FIRST]: { up: createTables },
  "schema-0002": { up: (db) => addTables(db, MACHINES) },
  "schema-0003": { up: (db) => addTables(db, MEMBERSHIP) },
  "schema-0004": { up: (db) => addTables(db, CHANGES) },
  "schema-0005": { up: (db) => addTables(db, SHARED_USE) },
  "schema-0006": { up: (db) => addTables(db, BUILD_OWNERS) },
  "schema-0007": { up: (db) => addTables(db, EXPIRY_CLAIMS) },
  "schema-0008": { up: (db) => addTables(db, BLOBS) },
  "schema-0009": { up: (db) => addTables(db, EDGES) },
  "schema-0010": { up: (db) => addTables(db, DRAINS) },
  "schema-0011": { up: (db) => addTables(db, SHARED_REPORTS) },
  "schema-0012": { up: (db) => addTables(db, CONSOLE_SESSIONS) },
  "schema-0013": { up: (db) => addTables(db, REWINDS) },
  "schema-0014": { up: (db) => addTables(db, WARM_POOLS) },
  "schema-0015": { up: (db) => addTables(db, PEOPLE) },
  "schema-0016": { up: (db) => addTables(db, AUTHORITIES) },
  "schema-0017": { up: vacuumSandboxesSooner },
  "schema-0018": { up: (db) => addTables(db, NODES) },
  "schema-0019": { up: (db) => addTables(db, NODE_EVENTS) },
};

/** The end of the name of a step that takes something away. */
const CONTRACTS = "-contracts";

/** @param newer steps that a newer version has made, and with which this one goes on as it is */
export function schemaSteps(newer: readonly string[]): MigrationProvider {
  const made = newer.map((name): [string, Migration] => [name, { up: () => Promise.resolve() }]);
  return { getMigrations: () => Promise.resolve({ ...steps, ...Object.fromEntries(made) }) };
}

/**
 * The steps of the database that this version does not know: a newer version has made them.
 * @throws {AppError} internal, when one of them has taken away what this version may need
 */
export async function newerSteps(db: Database): Promise<string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some(({ name }) => name === "kysely_migration")) return [];
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
  const newer = rows.map(({ name }) => name).filter((name) => !Object.hasOwn(steps, name));
  const contracts = newer.find((name) => name.endsWith(CONTRACTS));
  if (contracts === undefined) return newer;
  throw new AppError(
    "internal",
    `a newer version has brought the database to ${contracts}, which takes away what this version needs: start that version, or restore the copy from before it`,
  );
}

/** Before there was a first step, this one completed the schema that `FIRST` makes. */
const LAST_FORMER = "0017";

/**
 * Recognises a database that earlier versions have brought to the schema of the first step, and notes that step in place of
 * theirs. @throws {AppError} internal, for a database that they have not brought so far
 */
export async function adoptFormerSteps(db: Database): Promise<void> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some(({ name }) => name === "kysely_migration")) return;
  await db.transaction().execute(async (session) => {
    const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(session);
    const newest = rows.findLast(({ name }) => /^\d{4}$/.test(name))?.name;
    if (newest === undefined) return;
    if (newest !== LAST_FORMER)
      throw new AppError(
        "internal",
        `the database has the schema ${newest} of an earlier version, and this version goes on from ${LAST_FORMER} only: start the last version before schema-0001 with it once, or begin with an empty database`,
      );
    await sql`delete from kysely_migration where name <> ${LAST_FORMER}`.execute(session);
    await sql`update kysely_migration set name = ${FIRST}`.execute(session);
  });
}
