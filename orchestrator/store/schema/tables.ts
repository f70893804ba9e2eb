/** The tables and indexes of the first step, in statements that SQLite and PostgreSQL both read. Their columns are in `tables.ts`. */

import { type Kysely, SqliteAdapter, sql } from "kysely";

/** Makes the whole schema in an empty database. */
export async function createTables(db: Kysely<unknown>): Promise<void> {
  // SQLite then stores the rows in the order of their key, without an index beside them. PostgreSQL has no such tables.
  const inOrderOfKey = db.getExecutor().adapter instanceof SqliteAdapter ? " without rowid" : "";
  for (const group of [PROJECTS, TEMPLATES, SANDBOXES, NODES, EVENTS, SECRETS, usage(inOrderOfKey)])
    await addTables(db, group);
}

/** @param group statements that create tables and their indices, with a semicolon between two */
export async function addTables(db: Kysely<unknown>, group: string): Promise<void> {
  for (const statement of group.split(";")) await sql.raw(statement).execute(db);
}

const PROJECTS = `
  create table projects (
    id text primary key, public_id text not null unique, name text not null, slug text not null unique,
    max_sandboxes integer, max_sandbox_hours integer, created_at bigint not null, max_cpu integer,
    max_memory_mb integer, max_disk_mb integer, max_builds integer, workspace_id text, region text,
    status text default 'active' not null, status_reason text, max_starts_per_minute bigint,
    max_total_cpu bigint, max_total_memory_mb bigint, max_total_disk_mb bigint, max_snapshots bigint,
    max_volumes bigint, max_egress_rules bigint
  );
  create index projects_workspace on projects (workspace_id);
  create table workspaces (
    id text primary key, name text not null, is_default integer not null, created_at bigint not null
  );
  -- No foreign key: the row outlives its project.
  create table project_deletions (
    project_id text primary key, public_id text not null, name text not null, begun_at bigint not null,
    finished_at bigint
  );
  create table api_keys (
    id text primary key, project_id text not null references projects (id) on delete cascade,
    name text not null, hash text not null unique, mask_prefix text not null, mask_suffix text not null,
    value_length integer not null, created_at bigint not null, last_used_at bigint,
    scopes text default 'read,sandboxes,templates,admin' not null, expires_at bigint, created_by text
  );
  create index api_keys_project on api_keys (project_id, created_at)`;

const TEMPLATES = `
  create table templates (
    id text primary key, project_id text references projects (id) on delete cascade, public integer not null,
    created_at bigint not null, updated_at bigint not null, spawn_count integer default 0 not null,
    last_spawned_at bigint, kind text default 'template' not null
  );
  create index templates_project on templates (project_id, created_at);
  create table template_aliases (
    namespace text not null, alias text not null,
    template_id text not null references templates (id) on delete cascade, created_at bigint not null,
    constraint template_aliases_pk primary key (namespace, alias)
  );
  create index template_aliases_template on template_aliases (template_id);
  create table builds (
    id text primary key, template_id text not null references templates (id) on delete cascade,
    status text not null, image text not null, cpu_count integer not null, memory_mb integer not null,
    disk_mb integer not null, envd_version text not null, default_user text, default_workdir text,
    created_at bigint not null, updated_at bigint not null, finished_at bigint,
    kind text default 'template' not null, node_id text, memory integer, source_sandbox_id text, tags text,
    body text, settings text, parent_build_id text, snapshot_id text, reason_message text, reason_step text,
    started_at bigint, deadline_at bigint, accepted integer default 0 not null,
    with_access integer default 0 not null, log_offset integer default 0 not null,
    log_characters integer default 0 not null, stored_memory_bytes bigint, stored_disk_bytes bigint,
    volume_mounts text
  );
  create index builds_parent on builds (parent_build_id);
  create index builds_snapshot on builds (snapshot_id);
  create index builds_source on builds (source_sandbox_id);
  create index builds_status on builds (status, started_at);
  create index builds_template on builds (template_id, created_at);
  create table build_tags (
    template_id text not null references templates (id) on delete cascade, tag text not null,
    build_id text not null references builds (id) on delete cascade, created_at bigint not null,
    constraint build_tags_pk primary key (template_id, tag)
  );
  create index build_tags_build on build_tags (build_id);
  create table build_logs (
    build_id text not null references builds (id) on delete cascade, position integer not null,
    at bigint not null, level text not null, message text not null, step text,
    constraint build_logs_pk primary key (build_id, position)
  );
  create table build_files (
    build_id text not null references builds (id) on delete cascade, hash text not null,
    constraint build_files_pk primary key (build_id, hash)
  );
  -- No foreign key: the build is deleted before its node confirms the removal.
  create table build_removals (
    build_id text primary key, node_id text not null, created_at bigint not null
  )`;

const SANDBOXES = `
  -- No foreign keys: history outlives templates, nodes and projects.
  create table sandboxes (
    id text primary key, project_id text not null, state text not null, execution_id text not null,
    node_id text not null, address text, template_id text not null, build_id text not null, alias text,
    cpu_count integer not null, memory_mb integer not null, disk_mb integer not null,
    envd_version text not null, metadata text not null, envs text not null, network text, internet integer,
    on_timeout text not null, auto_resume integer not null, timeout_s integer not null,
    created_at bigint not null, started_at bigint not null, end_at bigint not null, deadline_at bigint not null,
    ended_at bigint, end_reason text, on_timeout_memory integer default 1 not null,
    on_resume text default 'restore' not null, snapshot_id text, snapshot_memory integer,
    pending_snapshot_id text, pending_snapshot_memory integer, resume_memory integer, resume_s integer,
    proxy_password text, network_version integer default 0 not null, network_change text,
    snapshot_memory_bytes bigint, snapshot_disk_bytes bigint, pending_snapshot_bytes bigint, exit_code integer,
    end_detail text, seed_id text, iam text, volume_mounts text
  );
  create index sandboxes_build on sandboxes (build_id, state);
  create index sandboxes_ended on sandboxes (state, ended_at);
  -- Nodes name executions when they ask for values of secrets.
  create index sandboxes_execution on sandboxes (execution_id);
  create index sandboxes_expiry on sandboxes (state, end_at);
  create index sandboxes_list on sandboxes (project_id, state, started_at, id);
  create index sandboxes_node on sandboxes (node_id, state);
  create index sandboxes_pending_snapshot on sandboxes (pending_snapshot_id);
  create index sandboxes_snapshot on sandboxes (snapshot_id);
  create index sandboxes_template on sandboxes (template_id, state);
  create table sandbox_metadata (
    sandbox_id text not null references sandboxes (id) on delete cascade, name text not null,
    value text not null,
    constraint sandbox_metadata_pk primary key (sandbox_id, name)
  );
  create table volumes (
    id text primary key, project_id text not null references projects (id) on delete cascade,
    name text not null, node_id text not null, size_mb integer not null, state text not null,
    created_at bigint not null, updated_at bigint not null
  );
  -- The name of a volume is free as soon as its deletion has begun.
  create unique index volumes_name on volumes (project_id, name) where state <> 'deleting';
  create index volumes_state on volumes (state, updated_at);
  create table volume_uses (
    volume_id text not null references volumes (id) on delete cascade,
    sandbox_id text references sandboxes (id) on delete cascade,
    build_id text references builds (id) on delete cascade
  );
  create index volume_uses_build on volume_uses (build_id);
  create index volume_uses_sandbox on volume_uses (sandbox_id);
  create index volume_uses_volume on volume_uses (volume_id)`;

const NODES = `
  create table nodes (
    id text primary key, facts text not null, load text not null, wanted text not null,
    wanted_at bigint not null, first_seen_at bigint not null, last_heartbeat_at bigint not null, key_id text
  );
  create table store_identity (
    one integer primary key, store_id text not null, created_at bigint not null
  );
  create table store_openings (
    id text primary key, opened_at bigint not null, mark bigint not null
  )`;

const EVENTS = `
  create table events (
    id text primary key, sequence bigint not null, type text not null, project_id text not null,
    sandbox_id text not null, execution_id text not null, template_id text not null, build_id text not null,
    data text, created_at bigint not null
  );
  create index events_project on events (project_id, sequence);
  create index events_sandbox on events (sandbox_id, sequence);
  -- Starts are counted from the events that were added since the last sample.
  create index events_sequence on events (sequence);
  -- One row, which the first event makes.
  create table event_order (
    id integer primary key, last bigint not null
  );
  create table webhooks (
    id text primary key, project_id text not null, name text not null, url text not null, secret text not null,
    events text not null, enabled integer not null, created_at bigint not null, last_event_at bigint,
    failures integer default 0 not null, failing_since bigint, disabled_at bigint, disabled_reason text
  );
  create index webhooks_project on webhooks (project_id, created_at);
  create table webhook_deliveries (
    id text primary key, webhook_id text not null references webhooks (id) on delete cascade,
    kind text not null, event_id text not null, event_type text not null, event text, stream text not null,
    sequence bigint not null, status text not null, attempts integer default 0 not null,
    created_at bigint not null, due_at bigint, claim text, attempted_at bigint, finished_at bigint,
    duration_ms integer, http_status integer, error_class text, error text, response text, earlier text
  );
  create index webhook_deliveries_due on webhook_deliveries (webhook_id, due_at);
  create index webhook_deliveries_finished on webhook_deliveries (webhook_id, finished_at);
  create index webhook_deliveries_log on webhook_deliveries (webhook_id, sequence);
  -- The first pending delivery of a stream is looked up at each event and at each end of a delivery.
  create index webhook_deliveries_stream on webhook_deliveries (webhook_id, stream, status, sequence);
  -- No foreign keys: the log outlives what it names.
  create table audit_log (
    seq bigint primary key, at bigint not null, project_id text, actor_kind text not null, actor_id text,
    actor_mask text, action text not null, object_kind text, object_id text, result text not null,
    status integer, error_code text, address text, request_id text, refers_to bigint, details text,
    previous_hash text not null, hash text not null
  );
  create index audit_log_object on audit_log (object_id, seq);
  create index audit_log_project on audit_log (project_id, seq);
  create index audit_log_request on audit_log (request_id, seq);
  create table audit_anchor (
    id integer primary key, seq bigint not null, hash text not null, at bigint not null
  )`;

const SECRETS = `
  create table secrets (
    id text primary key, project_id text not null references projects (id) on delete cascade,
    name text not null, version bigint not null, metadata text not null, value text not null,
    data_key text not null, key_id text not null, wrapped_at bigint not null, created_at bigint not null,
    updated_at bigint not null, use_count bigint default 0 not null, last_used_at bigint,
    constraint secrets_name unique (project_id, name)
  );
  create index secrets_key on secrets (key_id, id);
  create table secret_uses (
    secret_id text not null references secrets (id) on delete cascade, execution_id text not null,
    sandbox_id text not null references sandboxes (id) on delete cascade, project_id text not null,
    node_id text not null, version bigint not null, first_at bigint not null,
    use_count bigint default 0 not null, last_at bigint,
    constraint secret_uses_pk primary key (execution_id, secret_id)
  );
  create index secret_uses_sandbox on secret_uses (sandbox_id);
  create index secret_uses_secret on secret_uses (secret_id);
  create table use_reports (
    id text primary key, reported_at bigint not null
  );
  create index use_reports_at on use_reports (reported_at);
  create table identity_keys (
    sequence integer primary key, kid text not null unique, algorithm text not null, public_key text not null,
    private_key text, created_at bigint not null, signs_from bigint not null, token_ms bigint not null
  )`;

const usage = (inOrderOfKey: string) => `
  -- A number in place of the project's UUID: there are thousands of samples of each project.
  create table usage_projects (
    project_id text primary key references projects (id) on delete cascade, number integer not null unique
  );
  -- Written for all projects at once, every few seconds: in the order of time they fill few pages. No foreign key, whose
  -- check would need an index by project: these samples are deleted after an hour.
  create table usage_finest (
    at bigint not null, project integer not null, sandboxes integer not null, starts integer not null,
    cpu_ms bigint not null, memory_bytes bigint not null, disk_bytes bigint not null,
    sent_bytes bigint not null, received_bytes bigint not null,
    constraint usage_finest_pk primary key (at, project)
  )${inOrderOfKey};
  -- Read project by project.
  create table usage_samples (
    project integer not null references usage_projects (number) on delete cascade, step integer not null,
    at bigint not null, sandboxes integer not null, starts integer not null, cpu_ms bigint not null,
    memory_bytes bigint not null, disk_bytes bigint not null, sent_bytes bigint not null,
    received_bytes bigint not null,
    constraint usage_samples_pk primary key (project, step, at)
  )${inOrderOfKey};
  create table usage_blocks (
    project integer not null references usage_projects (number) on delete cascade, step integer not null,
    at bigint not null, samples bytea not null,
    constraint usage_blocks_pk primary key (project, step, at)
  );
  create table usage_counters (
    execution_id text primary key, cpu_ms bigint not null, sent_bytes bigint not null,
    received_bytes bigint not null
  );
  create table usage_spans (
    began bigint primary key, until bigint not null
  );
  create table usage_marks (
    name text primary key, value bigint not null
  )`;
