/** Lists, assigns and deletes tags: the build that a template's name and tag resolve to. `snapshots.ts` tags snapshots. */

import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";

export interface TagView {
  readonly tag: string;
  readonly buildId: string;
  readonly createdAt: number;
}

export function tagStore(db: Database, now: () => number) {
  return {
    /** Newest first. */
    async list(templateId: string): Promise<TagView[]> {
      const rows = await db
        .selectFrom("build_tags")
        .innerJoin("builds", "builds.id", "build_tags.build_id")
        .select(["build_tags.tag", "build_tags.build_id", "build_tags.created_at"])
        .where("build_tags.template_id", "=", templateId)
        .where("builds.status", "=", "ready")
        .orderBy("build_tags.created_at", "desc")
        .orderBy("build_tags.tag")
        .execute();
      return rows.map((row) => ({ tag: row.tag, buildId: row.build_id, createdAt: row.created_at }));
    },

    async assign(templateId: string, buildId: string, tags: readonly string[]): Promise<void> {
      await inTransaction(db, (session) => assign(session, { templateId, buildId, tags, at: now() }));
    },

    /** Deletes all tags or none. Returns the first tag that does not exist, or undefined when all were deleted. */
    async remove(templateId: string, tags: readonly string[]): Promise<string | undefined> {
      return inTransaction(db, async (session) => {
        const rows = await session
          .selectFrom("build_tags")
          .select("tag")
          .where("template_id", "=", templateId)
          .where("tag", "in", tags)
          .execute();
        const known = new Set(rows.map(({ tag }) => tag));
        const missing = tags.find((tag) => !known.has(tag));
        if (missing !== undefined) return missing;
        await session.deleteFrom("build_tags").where("template_id", "=", templateId).where("tag", "in", tags).execute();
        await session.updateTable("templates").set({ updated_at: now() }).where("id", "=", templateId).execute();
        return undefined;
      });
    },
  };
}

export async function assign(
  session: Session,
  given: {
    readonly templateId: string;
    readonly buildId: string;
    readonly tags: readonly string[];
    readonly at: number;
  },
): Promise<void> {
  const { templateId, buildId, at } = given;
  for (const tag of given.tags) {
    await session
      .insertInto("build_tags")
      .values({ template_id: templateId, tag, build_id: buildId, created_at: at })
      .onConflict((conflict) =>
        conflict.columns(["template_id", "tag"]).doUpdateSet({ build_id: buildId, created_at: at }),
      )
      .execute();
  }
  await session.updateTable("templates").set({ updated_at: at }).where("id", "=", templateId).execute();
}
