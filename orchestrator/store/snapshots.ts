/** Snapshots as the API shows them: templates of kind `snapshot`, with a build for each one taken. The only SQL on those. */

import { newTemplateId } from "../../shared/ids.ts";
import { type Build, buildTable, toBuild } from "./builds/record.ts";
import { lock, locks } from "./locks.ts";
import type { MovingOperations } from "./operations/operations.ts";
import type { SandboxRecord } from "./sandboxes/record.ts";
import type { StoredBytes } from "./storage/stored-bytes.ts";
import type { Database, Session } from "./tables.ts";
import { type Template, templateTable, toTemplate } from "./templates/record.ts";
import { inTransaction } from "./transactions.ts";
import { addUses } from "./volumes/volumes.ts";

/** A snapshot before its node is asked to take it. */
export interface NewSnapshot {
  /** Also its id on the node. */
  readonly id: string;
  readonly kind: "snapshot" | "fork";
  readonly templateId: string;
  readonly source: SandboxRecord;
  readonly image: string;
  readonly memory: boolean;
  readonly defaultUser: string | undefined;
  readonly defaultWorkdir: string | undefined;
  /** Settings of the build that the source was started from. */
  readonly sealedSettings: string | undefined;
}

export interface ListedSnapshot {
  readonly build: Build;
  readonly templateId: string;
  readonly namespace: string | undefined;
  readonly alias: string | undefined;
  readonly tag: string;
}

export interface SnapshotFilter {
  readonly projectId: string;
  readonly sourceSandboxId?: string;
  readonly templateId?: string;
  readonly tag?: string;
}

interface SnapshotStoreDeps {
  readonly now: () => number;
  readonly operations: MovingOperations;
}

export function snapshotStore(db: Database, { now, operations }: SnapshotStoreDeps) {
  return {
    /** The template for new snapshots of this name, made when missing. Undefined: the name is a template's. */
    async templateFor(
      projectId: string,
      name: { readonly namespace: string; readonly alias: string } | undefined,
    ): Promise<Template | undefined> {
      return inTransaction(db, async (session) => {
        if (name !== undefined) await lock(session, locks.names(name.namespace));
        const known = name === undefined ? undefined : await named(session, name.namespace, name.alias);
        if (known !== undefined) return known.kind === "snapshot" ? known : undefined;
        const at = now();
        const row = templateTable.toRow({
          id: newTemplateId(),
          projectId,
          public: false,
          kind: "snapshot",
          createdAt: at,
          updatedAt: at,
        });
        await session.insertInto("templates").values(row).execute();
        if (name !== undefined) {
          await session
            .insertInto("template_aliases")
            .values({ ...name, template_id: row.id, created_at: at })
            .execute();
        }
        return toTemplate(row);
      });
    },

    /** Written before the node is asked, so that a crash leaves no unknown snapshot. */
    async begin(session: Session, snapshot: NewSnapshot): Promise<void> {
      const { source } = snapshot;
      const at = now();
      await lock(session, locks.template(snapshot.templateId));
      const { id, kind, templateId, image, memory, defaultUser, defaultWorkdir, sealedSettings } = snapshot;
      const { cpuCount, memoryMB, diskSizeMB, envdVersion, nodeId, volumeMounts } = source;
      const row = buildTable.toRow({
        id,
        kind,
        templateId,
        image,
        memory,
        defaultUser,
        defaultWorkdir,
        sealedSettings,
        cpuCount,
        memoryMB,
        diskSizeMB,
        envdVersion,
        nodeId,
        volumeMounts,
        status: "building",
        sourceSandboxId: source.id,
        createdAt: at,
        updatedAt: at,
      });
      await session.insertInto("builds").values(row).execute();
      await addUses(session, source.volumeMounts, { build_id: snapshot.id });
      // The operation of the checkpoint ends before the forks have started from it.
      if (kind === "fork") await operations.begin(session, id, "snapshotting");
    },

    /** The snapshot is durable: sandboxes may start from it, under `tag` when one is given. */
    async finish(
      session: Session,
      id: string,
      done: {
        readonly image: string | undefined;
        readonly memory: boolean;
        readonly size?: StoredBytes;
        readonly tag: string | undefined;
      },
    ): Promise<Build | undefined> {
      const at = now();
      const row = await session
        .updateTable("builds")
        .set(
          buildTable.toColumns({
            status: "ready",
            memory: done.memory,
            size: done.size ?? null,
            updatedAt: at,
            finishedAt: at,
            image: done.image,
          }),
        )
        .where("id", "=", id)
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) return undefined;
      if (done.tag !== undefined) {
        await session
          .insertInto("build_tags")
          .values({ template_id: row.template_id, tag: done.tag, build_id: id, created_at: at })
          .onConflict((conflict) =>
            conflict.columns(["template_id", "tag"]).doUpdateSet({ build_id: id, created_at: at }),
          )
          .execute();
        await session.updateTable("templates").set({ updated_at: at }).where("id", "=", row.template_id).execute();
      }
      return toBuild(row);
    },

    /** Deletes the build of a snapshot, so that no sandbox starts from it; and its template, if no build is left. */
    async drop(session: Session, id: string): Promise<void> {
      const build = await session.selectFrom("builds").select("template_id").where("id", "=", id).executeTakeFirst();
      if (build === undefined) return;
      // A build that is added now must be seen: it would be deleted with its template.
      await lock(session, locks.template(build.template_id));
      await session.deleteFrom("builds").where("id", "=", id).execute();
      await operations.end(session, id);
      await session
        .deleteFrom("templates")
        .where("id", "=", build.template_id)
        .where("kind", "=", "snapshot")
        .where((where) =>
          where.not(where.exists(where.selectFrom("builds").select("id").where("template_id", "=", build.template_id))),
        )
        .execute();
    },

    /** All builds of a template that are on nodes, in any state; then the template itself. */
    async dropTemplate(templateId: string): Promise<Build[]> {
      return inTransaction(db, async (session) => {
        await lock(session, locks.template(templateId));
        const rows = await session.selectFrom("builds").selectAll().where("template_id", "=", templateId).execute();
        await session.deleteFrom("templates").where("id", "=", templateId).execute();
        return rows.map(toBuild);
      });
    },

    /** Removes this tag from the build. True: no other tag names the build. */
    async untag(
      templateId: string,
      tag: string,
    ): Promise<{ readonly build: Build; readonly unnamed: boolean } | undefined> {
      return inTransaction(db, async (session) => {
        const row = await session
          .selectFrom("build_tags")
          .innerJoin("builds", "builds.id", "build_tags.build_id")
          .selectAll("builds")
          .where("build_tags.template_id", "=", templateId)
          .where("build_tags.tag", "=", tag)
          .executeTakeFirst();
        if (row === undefined) return undefined;
        await session.deleteFrom("build_tags").where("template_id", "=", templateId).where("tag", "=", tag).execute();
        const other = await session
          .selectFrom("build_tags")
          .select("tag")
          .where("build_id", "=", row.id)
          .executeTakeFirst();
        return { build: toBuild(row), unnamed: other === undefined };
      });
    },

    /** Checkpoints of forks that were under way before `before`, and that no other orchestrator works on. */
    async leftForks(before: number): Promise<Build[]> {
      const rows = await db
        .selectFrom("builds")
        .selectAll()
        .where("kind", "=", "fork")
        .where("created_at", "<=", before)
        .where(operations.isFree("builds.id"))
        .execute();
      return rows.map(toBuild);
    },

    /** Snapshots that a crash interrupted: no sandbox that has not ended names them. The record of one that ended meanwhile does, for days. */
    async leftSnapshots(before: number): Promise<Build[]> {
      const rows = await db
        .selectFrom("builds")
        .selectAll()
        .where("kind", "=", "snapshot")
        .where("status", "=", "building")
        .where("created_at", "<=", before)
        .where((where) =>
          where.not(
            where.exists(
              where
                .selectFrom("sandboxes")
                .select("sandboxes.id")
                .whereRef("pending_snapshot_id", "=", "builds.id")
                .where("sandboxes.state", "!=", "gone"),
            ),
          ),
        )
        .execute();
      return rows.map(toBuild);
    },

    /** Deletes templates of snapshots that were begun and have no build. */
    async dropEmpty(before: number): Promise<void> {
      const empty = (session: Session) =>
        session
          .selectFrom("templates")
          .select("templates.id")
          .where("kind", "=", "snapshot")
          .where("created_at", "<=", before)
          .where((where) =>
            where.not(
              where.exists(
                where.selectFrom("builds").select("builds.id").whereRef("builds.template_id", "=", "templates.id"),
              ),
            ),
          );
      for (const { id } of await empty(db).execute()) {
        await inTransaction(db, async (session) => {
          await lock(session, locks.template(id));
          await session
            .deleteFrom("templates")
            .where("templates.id", "in", empty(session).where("templates.id", "=", id))
            .execute();
        });
      }
    },

    /** Every tag of every snapshot that matches, the newest snapshot first. */
    async list(filter: SnapshotFilter): Promise<ListedSnapshot[]> {
      let query = db
        .selectFrom("build_tags")
        .innerJoin("builds", "builds.id", "build_tags.build_id")
        .innerJoin("templates", "templates.id", "builds.template_id")
        .leftJoin("template_aliases", "template_aliases.template_id", "templates.id")
        .selectAll("builds")
        .select(["template_aliases.namespace", "template_aliases.alias", "build_tags.tag"])
        .where("templates.kind", "=", "snapshot")
        .where("templates.project_id", "=", filter.projectId)
        .where("builds.status", "=", "ready");
      if (filter.sourceSandboxId !== undefined) {
        query = query.where("builds.source_sandbox_id", "=", filter.sourceSandboxId);
      }
      if (filter.templateId !== undefined) query = query.where("builds.template_id", "=", filter.templateId);
      if (filter.tag !== undefined) query = query.where("build_tags.tag", "=", filter.tag);
      const rows = await query
        .orderBy("builds.created_at", "desc")
        .orderBy("builds.id")
        .orderBy("build_tags.tag")
        .execute();
      return rows.map((row) => ({
        build: toBuild(row),
        templateId: row.template_id,
        namespace: row.namespace ?? undefined,
        alias: row.alias ?? undefined,
        tag: row.tag,
      }));
    },
  };
}

async function named(session: Session, namespace: string, alias: string): Promise<Template | undefined> {
  const row = await session
    .selectFrom("template_aliases")
    .innerJoin("templates", "templates.id", "template_aliases.template_id")
    .selectAll("templates")
    .where("template_aliases.namespace", "=", namespace)
    .where("template_aliases.alias", "=", alias)
    .executeTakeFirst();
  return row === undefined ? undefined : toTemplate(row);
}
