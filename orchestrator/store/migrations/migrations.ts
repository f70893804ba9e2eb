/** Numbered steps of the schema, forward only. A published step is never edited; the next one corrects it. */

import type { Kysely, Migration, MigrationProvider } from "kysely";
import type { Seal } from "../../../shared/program/seal.ts";
import { builds } from "./0004-builds.ts";
import { sealNetworks } from "./0005-seal.ts";
import { pendingSnapshot } from "./0006-pending-snapshot.ts";
import { storedSizes } from "./0007-stored-sizes.ts";
import { ends } from "./0008-ends.ts";
import { keys } from "./0009-keys.ts";
import { audit } from "./0010-audit.ts";
import { secrets } from "./0011-secrets.ts";
import { identity } from "./0012-identity.ts";
import { projects } from "./0013-projects.ts";
import { webhooks } from "./0014-webhooks.ts";
import { usage } from "./0015-usage.ts";
import { volumes } from "./0016-volumes.ts";
import { lineage } from "./0017-lineage.ts";

const first: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable("projects")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("public_id", "text", (column) => column.notNull().unique())
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("slug", "text", (column) => column.notNull().unique())
      .addColumn("max_sandboxes", "integer")
      .addColumn("max_sandbox_hours", "integer")
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .execute();
    await db.schema
      .createTable("api_keys")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("project_id", "text", (column) => column.notNull().references("projects.id").onDelete("cascade"))
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("hash", "text", (column) => column.notNull().unique())
      .addColumn("mask_prefix", "text", (column) => column.notNull())
      .addColumn("mask_suffix", "text", (column) => column.notNull())
      .addColumn("value_length", "integer", (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .addColumn("last_used_at", "bigint")
      .execute();
    await db.schema.createIndex("api_keys_project").on("api_keys").columns(["project_id", "created_at"]).execute();
    await templates(db);
    await sandboxes(db);
    await db.schema
      .createTable("nodes")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("facts", "text", (column) => column.notNull())
      .addColumn("load", "text", (column) => column.notNull())
      .addColumn("wanted", "text", (column) => column.notNull())
      .addColumn("wanted_at", "bigint", (column) => column.notNull())
      .addColumn("first_seen_at", "bigint", (column) => column.notNull())
      .addColumn("last_heartbeat_at", "bigint", (column) => column.notNull())
      .execute();
    await events(db);
  },
};

async function templates(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("templates")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("project_id", "text", (column) => column.references("projects.id").onDelete("cascade"))
    .addColumn("public", "integer", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("updated_at", "bigint", (column) => column.notNull())
    .addColumn("spawn_count", "integer", (column) => column.notNull().defaultTo(0))
    .addColumn("last_spawned_at", "bigint")
    .execute();
  await db.schema.createIndex("templates_project").on("templates").columns(["project_id", "created_at"]).execute();
  await db.schema
    .createTable("template_aliases")
    .addColumn("namespace", "text", (column) => column.notNull())
    .addColumn("alias", "text", (column) => column.notNull())
    .addColumn("template_id", "text", (column) => column.notNull().references("templates.id").onDelete("cascade"))
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("template_aliases_pk", ["namespace", "alias"])
    .execute();
  await db.schema.createIndex("template_aliases_template").on("template_aliases").column("template_id").execute();
  await db.schema
    .createTable("builds")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("template_id", "text", (column) => column.notNull().references("templates.id").onDelete("cascade"))
    .addColumn("status", "text", (column) => column.notNull())
    .addColumn("image", "text", (column) => column.notNull())
    .addColumn("cpu_count", "integer", (column) => column.notNull())
    .addColumn("memory_mb", "integer", (column) => column.notNull())
    .addColumn("disk_mb", "integer", (column) => column.notNull())
    .addColumn("envd_version", "text", (column) => column.notNull())
    .addColumn("default_user", "text")
    .addColumn("default_workdir", "text")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("updated_at", "bigint", (column) => column.notNull())
    .addColumn("finished_at", "bigint")
    .execute();
  await db.schema.createIndex("builds_template").on("builds").columns(["template_id", "created_at"]).execute();
  await db.schema
    .createTable("build_tags")
    .addColumn("template_id", "text", (column) => column.notNull().references("templates.id").onDelete("cascade"))
    .addColumn("tag", "text", (column) => column.notNull())
    .addColumn("build_id", "text", (column) => column.notNull().references("builds.id").onDelete("cascade"))
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("build_tags_pk", ["template_id", "tag"])
    .execute();
}

// No foreign keys: history outlives templates, nodes and projects.
async function sandboxes(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("sandboxes")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("project_id", "text", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("execution_id", "text", (column) => column.notNull())
    .addColumn("node_id", "text", (column) => column.notNull())
    .addColumn("address", "text")
    .addColumn("template_id", "text", (column) => column.notNull())
    .addColumn("build_id", "text", (column) => column.notNull())
    .addColumn("alias", "text")
    .addColumn("cpu_count", "integer", (column) => column.notNull())
    .addColumn("memory_mb", "integer", (column) => column.notNull())
    .addColumn("disk_mb", "integer", (column) => column.notNull())
    .addColumn("envd_version", "text", (column) => column.notNull())
    .addColumn("metadata", "text", (column) => column.notNull())
    .addColumn("envs", "text", (column) => column.notNull())
    .addColumn("network", "text")
    .addColumn("internet", "integer")
    .addColumn("on_timeout", "text", (column) => column.notNull())
    .addColumn("auto_resume", "integer", (column) => column.notNull())
    .addColumn("timeout_s", "integer", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("started_at", "bigint", (column) => column.notNull())
    .addColumn("end_at", "bigint", (column) => column.notNull())
    .addColumn("deadline_at", "bigint", (column) => column.notNull())
    .addColumn("ended_at", "bigint")
    .addColumn("end_reason", "text")
    .execute();
  const index = (name: string, columns: string[]) =>
    db.schema.createIndex(name).on("sandboxes").columns(columns).execute();
  await index("sandboxes_list", ["project_id", "state", "started_at", "id"]);
  await index("sandboxes_expiry", ["state", "end_at"]);
  await index("sandboxes_node", ["node_id", "state"]);
  await index("sandboxes_ended", ["state", "ended_at"]);
  await db.schema
    .createTable("sandbox_metadata")
    .addColumn("sandbox_id", "text", (column) => column.notNull().references("sandboxes.id").onDelete("cascade"))
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("value", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("sandbox_metadata_pk", ["sandbox_id", "name"])
    .execute();
}

async function events(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("events")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("sequence", "bigint", (column) => column.notNull())
    .addColumn("type", "text", (column) => column.notNull())
    .addColumn("project_id", "text", (column) => column.notNull())
    .addColumn("sandbox_id", "text", (column) => column.notNull())
    .addColumn("execution_id", "text", (column) => column.notNull())
    .addColumn("template_id", "text", (column) => column.notNull())
    .addColumn("build_id", "text", (column) => column.notNull())
    .addColumn("data", "text")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("events_project").on("events").columns(["project_id", "sequence"]).execute();
  await db.schema.createIndex("events_sandbox").on("events").columns(["sandbox_id", "sequence"]).execute();
}

/** Pause and snapshots: what a paused sandbox resumes from, and builds that are snapshots. */
const second: Migration = {
  async up(db: Kysely<unknown>) {
    // One column per statement: SQLite supports no other form.
    const sandbox = () => db.schema.alterTable("sandboxes");
    await sandbox()
      .addColumn("on_timeout_memory", "integer", (column) => column.notNull().defaultTo(1))
      .execute();
    await sandbox()
      .addColumn("on_resume", "text", (column) => column.notNull().defaultTo("restore"))
      .execute();
    await sandbox().addColumn("snapshot_id", "text").execute();
    await sandbox().addColumn("snapshot_memory", "integer").execute();
    await sandbox().addColumn("capture_id", "text").execute();
    await sandbox().addColumn("capture_memory", "integer").execute();
    await sandbox().addColumn("resume_memory", "integer").execute();
    await sandbox().addColumn("resume_s", "integer").execute();
    await db.schema.createIndex("sandboxes_snapshot").on("sandboxes").column("snapshot_id").execute();
    await db.schema.createIndex("sandboxes_capture").on("sandboxes").column("capture_id").execute();
    await db.schema.createIndex("sandboxes_template").on("sandboxes").columns(["template_id", "state"]).execute();
    await db.schema
      .alterTable("templates")
      .addColumn("kind", "text", (column) => column.notNull().defaultTo("template"))
      .execute();
    const build = () => db.schema.alterTable("builds");
    await build()
      .addColumn("kind", "text", (column) => column.notNull().defaultTo("template"))
      .execute();
    await build().addColumn("node_id", "text").execute();
    await build().addColumn("memory", "integer").execute();
    await build().addColumn("source_sandbox_id", "text").execute();
    await db.schema.createIndex("builds_source").on("builds").column("source_sandbox_id").execute();
  },
};

/** Network policies that change while a sandbox runs, and the password of an egress proxy. */
const third: Migration = {
  async up(db: Kysely<unknown>) {
    const sandbox = () => db.schema.alterTable("sandboxes");
    await sandbox().addColumn("proxy_password", "text").execute();
    await sandbox()
      .addColumn("network_version", "integer", (column) => column.notNull().defaultTo(0))
      .execute();
    await sandbox().addColumn("network_change", "text").execute();
  },
};

/** `sealing`: for rows that were written in the clear. */
export function migrations(sealing: Seal): MigrationProvider {
  const all = {
    "0001": first,
    "0002": second,
    "0003": third,
    "0004": builds,
    "0005": sealNetworks(sealing),
    "0006": pendingSnapshot,
    "0007": storedSizes,
    "0008": ends,
    "0009": keys,
    "0010": audit,
    "0011": secrets,
    "0012": identity,
    "0013": projects,
    "0014": webhooks,
    "0015": usage,
    "0016": volumes,
    "0017": lineage,
  };
  return { getMigrations: () => Promise.resolve(all) };
}
