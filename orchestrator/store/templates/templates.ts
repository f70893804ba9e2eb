/** SQL on templates with their builds, aliases and tags; `builds/`, `snapshots.ts` and `tags.ts` write these tables too. */

import { newTemplateId, newUuid } from "../../../shared/ids.ts";
import { type Build, buildTable, toBuild } from "../builds/record.ts";
import { lock, locks } from "../locks.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type Template, templateTable, toTemplate } from "./record.ts";

export interface Alias {
  /** '' for promoted names. */
  readonly namespace: string;
  readonly alias: string;
}

export interface BaseImage {
  readonly image: string;
  readonly cpuCount: number;
  readonly memoryMB: number;
  readonly diskSizeMB: number;
  readonly envdVersion: string;
}

export type TemplateStore = ReturnType<typeof templateStore>;

export function templateStore(db: Database, now: () => number) {
  return {
    async get(id: string): Promise<Template | undefined> {
      const row = await db.selectFrom("templates").selectAll().where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : toTemplate(row);
    },

    /** Looks the alias up in each namespace in turn. */
    async findByAlias(alias: string, namespaces: readonly string[]): Promise<Template | undefined> {
      const rows = await db
        .selectFrom("template_aliases")
        .innerJoin("templates", "templates.id", "template_aliases.template_id")
        .selectAll("templates")
        .select("template_aliases.namespace")
        .where("alias", "=", alias)
        .where("namespace", "in", namespaces)
        .execute();
      const row = namespaces.map((namespace) => rows.find((row) => row.namespace === namespace)).find(Boolean);
      return row === undefined ? undefined : toTemplate(row);
    },

    async tagged(templateId: string, tag: string): Promise<Build | undefined> {
      const row = await db
        .selectFrom("build_tags")
        .innerJoin("builds", "builds.id", "build_tags.build_id")
        .selectAll("builds")
        .where("build_tags.template_id", "=", templateId)
        .where("build_tags.tag", "=", tag)
        .where("builds.status", "=", "ready")
        .executeTakeFirst();
      return row === undefined ? undefined : toBuild(row);
    },

    /** Tags that name a build. */
    async tagsOf(buildId: string): Promise<string[]> {
      const rows = await db.selectFrom("build_tags").select("tag").where("build_id", "=", buildId).execute();
      return rows.map(({ tag }) => tag);
    },

    async build(id: string): Promise<Build | undefined> {
      const row = await db.selectFrom("builds").selectAll().where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : toBuild(row);
    },

    async aliases(templateId: string): Promise<Alias[]> {
      return db
        .selectFrom("template_aliases")
        .select(["namespace", "alias"])
        .where("template_id", "=", templateId)
        .orderBy("created_at")
        .execute();
    },

    /** Newest first. */
    async builds(templateId: string): Promise<Build[]> {
      const rows = await db
        .selectFrom("builds")
        .selectAll()
        .where("template_id", "=", templateId)
        .where("kind", "!=", "fork")
        .orderBy("created_at", "desc")
        .orderBy("id")
        .execute();
      return rows.map(toBuild);
    },

    /** The templates of the project and those with a promoted name, newest first, without snapshots. */
    async visible(projectId: string): Promise<Template[]> {
      const rows = await db
        .selectFrom("templates")
        .selectAll()
        .where((where) => {
          const promoted = where
            .selectFrom("template_aliases")
            .select("template_aliases.alias")
            .whereRef("template_aliases.template_id", "=", "templates.id")
            .where("template_aliases.namespace", "=", "");
          return where.or([
            where("project_id", "=", projectId),
            where.and([where("public", "=", 1), where.exists(promoted)]),
          ]);
        })
        .where("kind", "=", "template")
        .where((where) =>
          where.exists(
            where.selectFrom("builds").select("builds.id").whereRef("builds.template_id", "=", "templates.id"),
          ),
        )
        .orderBy("created_at", "desc")
        .orderBy("id")
        .execute();
      return rows.map(toTemplate);
    },

    async setPublic(id: string, isPublic: boolean): Promise<void> {
      await db
        .updateTable("templates")
        .set({ public: Number(isPublic), updated_at: now() })
        .where("id", "=", id)
        .execute();
    },

    /**
     * Gives the template a name that resolves for every project, and publishes it; the template that had the name loses
     * it. False: the name belongs to a template of the platform's own, such as base.
     */
    async promote(id: string, alias: string): Promise<boolean> {
      return inTransaction(db, async (session) => {
        await lock(session, locks.names(""));
        const own = await session
          .selectFrom("template_aliases")
          .innerJoin("templates", "templates.id", "template_aliases.template_id")
          .select("templates.id")
          .where("template_aliases.namespace", "=", "")
          .where("template_aliases.alias", "=", alias)
          .where("templates.project_id", "is", null)
          .executeTakeFirst();
        if (own !== undefined) return false;
        await session
          .insertInto("template_aliases")
          .values({ namespace: "", alias, template_id: id, created_at: now() })
          .onConflict((conflict) => conflict.columns(["namespace", "alias"]).doUpdateSet({ template_id: id }))
          .execute();
        await session.updateTable("templates").set({ public: 1, updated_at: now() }).where("id", "=", id).execute();
        return true;
      });
    },

    /** The builds that promoted names of projects' templates mean. */
    async promotedBuilds(): Promise<Build[]> {
      const rows = await db
        .selectFrom("template_aliases")
        .innerJoin("templates", "templates.id", "template_aliases.template_id")
        .innerJoin("build_tags", "build_tags.template_id", "templates.id")
        .innerJoin("builds", "builds.id", "build_tags.build_id")
        .selectAll("builds")
        .where("template_aliases.namespace", "=", "")
        .where("templates.project_id", "is not", null)
        .where("build_tags.tag", "=", "default")
        .where("builds.status", "=", "ready")
        .execute();
      return rows.map(toBuild);
    },

    /** @param size null: what the demand asks for */
    async setWarmPool(id: string, size: number | null): Promise<void> {
      await db.updateTable("templates").set({ warm_pool: size, updated_at: now() }).where("id", "=", id).execute();
    },

    /** The builds that templates with such a setting mean by their names. */
    async warmPools(): Promise<{ readonly build: Build; readonly size: number }[]> {
      const rows = await db
        .selectFrom("templates")
        .innerJoin("build_tags", "build_tags.template_id", "templates.id")
        .innerJoin("builds", "builds.id", "build_tags.build_id")
        .selectAll("builds")
        .select("templates.warm_pool")
        .where("templates.warm_pool", "is not", null)
        .where("templates.kind", "=", "template")
        .where("build_tags.tag", "=", "default")
        .where("builds.status", "=", "ready")
        .execute();
      return rows.map(({ warm_pool: size, ...row }) => ({ build: toBuild(row), size: size ?? 0 }));
    },

    async countSpawns(id: string, count: number): Promise<void> {
      await db
        .updateTable("templates")
        .set((update) => ({ spawn_count: update("spawn_count", "+", count), last_spawned_at: now() }))
        .where("id", "=", id)
        .execute();
    },

    /** Makes sure that the promoted template `alias` has a ready build of exactly this image, and returns that build. */
    async seed(alias: string, base: BaseImage): Promise<Build> {
      return inTransaction(db, async (session) => {
        await lock(session, locks.names(""));
        const templateId = await promoted(session, alias, now());
        const row = buildTable.toRow({
          ...base,
          id: newUuid(),
          templateId,
          status: "ready",
          kind: "template",
          createdAt: now(),
          updatedAt: now(),
          finishedAt: now(),
        });
        const known = await session
          .selectFrom("build_tags")
          .innerJoin("builds", "builds.id", "build_tags.build_id")
          .selectAll("builds")
          .where("build_tags.template_id", "=", templateId)
          .where("build_tags.tag", "=", "default")
          .executeTakeFirst();
        if (known !== undefined && sameBase(toBuild(known), base)) return toBuild(known);
        await session.insertInto("builds").values(row).execute();
        await session
          .insertInto("build_tags")
          .values({ template_id: templateId, tag: "default", build_id: row.id, created_at: now() })
          .onConflict((conflict) =>
            conflict.columns(["template_id", "tag"]).doUpdateSet({ build_id: row.id, created_at: now() }),
          )
          .execute();
        await session.updateTable("templates").set({ updated_at: now() }).where("id", "=", templateId).execute();
        return toBuild(row);
      });
    },
  };
}

async function promoted(session: Session, alias: string, at: number): Promise<string> {
  const known = await session
    .selectFrom("template_aliases")
    .select("template_id")
    .where("namespace", "=", "")
    .where("alias", "=", alias)
    .executeTakeFirst();
  if (known !== undefined) return known.template_id;
  const id = newTemplateId();
  await session
    .insertInto("templates")
    .values(
      templateTable.toRow({
        id,
        projectId: undefined,
        public: true,
        kind: "template",
        createdAt: at,
        updatedAt: at,
      }),
    )
    .execute();
  await session
    .insertInto("template_aliases")
    .values({ namespace: "", alias, template_id: id, created_at: at })
    .execute();
  return id;
}

function sameBase(build: Build, base: BaseImage): boolean {
  return (
    build.image === base.image &&
    build.cpuCount === base.cpuCount &&
    build.memoryMB === base.memoryMB &&
    build.diskSizeMB === base.diskSizeMB &&
    build.envdVersion === base.envdVersion
  );
}
