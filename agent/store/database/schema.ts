/** The tables of the agent's SQLite file. */

/** `user_version` of a file with this schema. Earlier versions counted their steps up to it. */
export const VERSION = 16;

export const SCHEMA = `
  create table build_logs (
    build_id text not null, seq integer not null, at integer not null, level text not null,
    message text not null, step text,
    primary key (build_id, seq)
  ) strict, without rowid;
  create table builds (
    id text primary key, template_id text not null,
    -- Deleted ones are remembered for a while: a start that arrives after the deletion must not begin.
    state text not null,
    reason text, reason_step text, result text,
    -- From before it is taken: also a snapshot of a build that failed is found again.
    snapshot_id text,
    changed_at integer not null
  ) strict;
  create table containers (
    id text primary key, slot integer not null unique, pid integer not null, control_token text not null,
    template_id text not null, build_id text not null, image text not null, cpu_count integer not null,
    memory_mb integer not null, disk_size_mb integer not null, runtime text not null, upper_directory text,
    created_at integer not null
  ) strict;
  create table executions (
    id text primary key, sandbox_id text not null, container_id text not null unique, end_at integer not null,
    started_at integer not null, warm integer not null,
    -- 0 until the sandbox was initialised: found so after a crash it is removed.
    running integer not null default 0,
    on_timeout text not null default 'kill', on_timeout_memory integer not null default 1,
    egress text not null default '{}', project_id text,
    -- The orchestrator's row of the sandbox, as it sent it.
    record text
  ) strict;
  create table exits (
    id text primary key, sandbox_id text not null, reason text not null, exit_code integer, at integer not null,
    detail text
  ) strict;
  create table layers (
    key text primary key, image text not null, bytes integer not null, used_at integer not null,
    -- Null: the layer of a base.
    context text
  ) strict;
  create table logs (
    execution_id text not null, seq integer not null, at integer not null, level integer not null,
    message text not null, fields text not null,
    primary key (execution_id, seq)
  ) strict, without rowid;
  create index logs_at on logs (at);
  -- Rows of sandboxes that are gone are removed by their age.
  create table network_log (
    sandbox_id text not null, seq integer not null, at integer not null, protocol text not null,
    address text not null, port integer not null, name text, verdict text not null, rule text not null,
    count integer not null, sent_bytes integer not null, received_bytes integer not null,
    primary key (sandbox_id, seq)
  ) strict, without rowid;
  create index network_log_at on network_log (at);
  create table network_suppressed (
    sandbox_id text primary key, count integer not null, at integer not null
  ) strict;
  -- Containers and snapshots that a lost database named. until, in unix milliseconds: when they may be deleted.
  create table remains (
    kind text not null, id text not null, until integer not null,
    primary key (kind, id)
  ) strict, without rowid;
  create table samples (
    execution_id text not null, at integer not null, cpu_count integer not null, cpu_used_pct real not null,
    mem_used integer not null, mem_total integer not null, mem_cache integer not null,
    disk_used integer not null, disk_total integer not null,
    primary key (execution_id, at)
  ) strict, without rowid;
  create index samples_at on samples (at);
  -- The store that this node serves.
  create table served_store (
    one integer primary key check (one = 1), store_id text not null, opening text not null,
    mark integer not null
  ) strict;
  create table snapshots (
    id text primary key, kind text not null, state text not null, sandbox_id text not null,
    execution_id text not null, container_id text not null,
    -- What is needed to run the container again, as JSON: read and written whole.
    disk text not null,
    image text, memory integer not null, memory_bytes integer not null, disk_bytes integer not null,
    taken_at integer not null, project_id text, resuming integer not null default 0,
    -- The orchestrator's row of the sandbox, as it sent it.
    record text,
    held_since integer, held_until integer, held_reason text
  ) strict;
  create table stopped (
    id text primary key, at integer not null
  ) strict;`;

/** Tables that came later, made where they are missing. An agent of an earlier version does not read them. */
export const ADDED = `
  -- Blob stores that this node has used, and for which platform.
  create table if not exists blob_stores (
    name text not null, owner text not null,
    primary key (name, owner)
  ) strict, without rowid;
  -- Snapshots that are in the blob store.
  create table if not exists uploads (
    snapshot_id text primary key, ref text not null, bytes integer not null
  ) strict;
  -- Images of other nodes that this one has fetched.
  create table if not exists copies (
    image text primary key, fetched_at integer not null
  ) strict;
  -- Images of builds that are in the blob store.
  create table if not exists image_uploads (
    build_id text primary key, ref text not null, bytes integer not null
  ) strict;
  -- Projects that own builds: their content in the blob store is named for them.
  create table if not exists build_owners (
    build_id text primary key, project_id text not null
  ) strict;
  -- The node's lease, in milliseconds of one start of the kernel; frozen: a JSON list of executions, written whole.
  create table if not exists lease (
    one integer primary key check (one = 1), boot_id text not null, sent_at integer, for_ms integer,
    frozen text not null
  ) strict;`;
