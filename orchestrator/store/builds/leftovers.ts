/** SQL on unused builds, on the removal of builds from their nodes, and on the archives that builds still need. */

import { lock, lockAll, locks } from "../locks.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type Build, toBuild } from "./record.ts";

export interface KeepUntil {
  /** Applies to builds that ended before this time, unix milliseconds. */
  readonly ended: number;
  /** Applies to builds that were requested before this time and never started. */
  readonly requested: number;
}

/** Builds removed in one transaction. */
const BATCH = 200;

export function buildLeftovers(db: Database, now: () => number) {
  return {
    /**
     * Builds of projects that no tag names, no sandbox was started from, no build under way is based on, and that are not
     * the newest of their template; and those that were requested and never started. Changes nothing.
     */
    unused: (until: KeepUntil): Promise<Build[]> => unused(db, until),

    /** Deletes the builds and queues their removal on the nodes. */
    async drop(until: KeepUntil): Promise<Build[]> {
      return inTransaction(db, async (session) => {
        const found = await unused(session, until);
        if (found.length === 0) return found;
        await lockAll(
          session,
          found.map(({ templateId }) => locks.template(templateId)),
        );
        // A build may have got a use, or its template another build, before the lock.
        const builds = await unused(
          session,
          until,
          found.map(({ id }) => id),
        );
        if (builds.length === 0) return builds;
        await queueRemovals(session, builds, now());
        const ids = builds.map(({ id }) => id);
        await session.deleteFrom("builds").where("id", "in", ids).execute();
        await session
          .deleteFrom("templates")
          .where("id", "in", [...new Set(builds.map(({ templateId }) => templateId))])
          .where((where) =>
            where.not(
              where.exists(
                where.selectFrom("builds").select("builds.id").whereRef("builds.template_id", "=", "templates.id"),
              ),
            ),
          )
          .execute();
        return builds;
      });
    },

    /** Deletes a template and returns its builds. Undefined: a sandbox that has not ended was started from it. */
    async dropTemplate(templateId: string): Promise<Build[] | undefined> {
      return inTransaction(db, async (session) => {
        await lock(session, locks.template(templateId));
        const used = await session
          .selectFrom("sandboxes")
          .select("id")
          .where("template_id", "=", templateId)
          .where("state", "!=", "gone")
          .limit(1)
          .executeTakeFirst();
        if (used !== undefined) return undefined;
        const rows = await session.selectFrom("builds").selectAll().where("template_id", "=", templateId).execute();
        const builds = rows.map(toBuild);
        await queueRemovals(session, builds, now());
        await session.deleteFrom("templates").where("id", "=", templateId).execute();
        return builds;
      });
    },

    /** Removals that these nodes have not confirmed, the oldest first. */
    async removals(
      nodeIds: readonly string[],
      limit: number,
    ): Promise<{ readonly buildId: string; readonly nodeId: string }[]> {
      const rows = await db
        .selectFrom("build_removals")
        .selectAll()
        .where("node_id", "in", nodeIds)
        .orderBy("created_at")
        .limit(limit)
        .execute();
      return rows.map((row) => ({ buildId: row.build_id, nodeId: row.node_id }));
    },

    /** Drops a removal that the node has confirmed, or will never confirm. */
    async removed(buildId: string): Promise<void> {
      await db.deleteFrom("build_removals").where("build_id", "=", buildId).execute();
    },

    /** Drops unconfirmed removals that are older than `before`: their nodes are not coming back. */
    async forgetRemovals(before: number): Promise<void> {
      await db.deleteFrom("build_removals").where("created_at", "<=", before).execute();
    },

    /** Whether a node has a build under way that copies from this archive of the template. */
    async readsFile({
      nodeId,
      templateId,
      hash,
    }: {
      nodeId: string;
      templateId: string;
      hash: string;
    }): Promise<boolean> {
      const row = await db
        .selectFrom("build_files")
        .innerJoin("builds", "builds.id", "build_files.build_id")
        .select("builds.id")
        .where("builds.template_id", "=", templateId)
        .where("builds.node_id", "=", nodeId)
        .where("builds.status", "=", "building")
        .where("build_files.hash", "=", hash)
        .executeTakeFirst();
      return row !== undefined;
    },

    /** Hashes of the archives that builds of a template copy from. */
    async neededFiles(templateId: string): Promise<ReadonlySet<string>> {
      const rows = await db
        .selectFrom("build_files")
        .innerJoin("builds", "builds.id", "build_files.build_id")
        .select("build_files.hash")
        .where("builds.template_id", "=", templateId)
        .execute();
      return new Set(rows.map(({ hash }) => hash));
    },
  };
}

/** Queues the removal of the builds on their nodes. */
export async function queueRemovals(
  session: Session,
  builds: readonly Pick<Build, "id" | "nodeId">[],
  at: number,
): Promise<void> {
  for (const { id, nodeId } of builds) {
    if (nodeId === undefined) continue;
    await session
      .insertInto("build_removals")
      .values({ build_id: id, node_id: nodeId, created_at: at })
      .onConflict((conflict) => conflict.column("build_id").doNothing())
      .execute();
  }
}

/** @param among only these; absent: all */
async function unused(session: Session, until: KeepUntil, among?: readonly string[]): Promise<Build[]> {
  const rows = await session
    .selectFrom("builds")
    .selectAll("builds")
    .innerJoin("templates", "templates.id", "builds.template_id")
    .where("templates.project_id", "is not", null)
    .where("builds.kind", "=", "template")
    .where((where) =>
      where.or([
        where.and([where("builds.status", "=", "waiting"), where("builds.created_at", "<=", until.requested)]),
        where.and([
          where("builds.status", "in", ["ready", "error"]),
          where("builds.finished_at", "<=", until.ended),
          where.exists(
            where
              .selectFrom("builds as newer")
              .select("newer.id")
              .whereRef("newer.template_id", "=", "builds.template_id")
              .where("newer.status", "!=", "waiting")
              .where((newer) =>
                newer.or([
                  newer("newer.created_at", ">", newer.ref("builds.created_at")),
                  newer.and([
                    newer("newer.created_at", "=", newer.ref("builds.created_at")),
                    newer("newer.id", ">", newer.ref("builds.id")),
                  ]),
                ]),
              ),
          ),
        ]),
      ]),
    )
    .where((where) =>
      where.not(
        where.exists(where.selectFrom("build_tags").select("tag").whereRef("build_tags.build_id", "=", "builds.id")),
      ),
    )
    .where((where) =>
      where.not(
        where.exists(
          where
            .selectFrom("sandboxes")
            .select("sandboxes.id")
            .whereRef("sandboxes.build_id", "=", "builds.id")
            .where("sandboxes.state", "!=", "gone"),
        ),
      ),
    )
    .where((where) =>
      where.not(
        where.exists(
          where
            .selectFrom("builds as child")
            .select("child.id")
            .whereRef("child.parent_build_id", "=", "builds.id")
            .where("child.status", "=", "building"),
        ),
      ),
    )
    .$if(among !== undefined, (query) => query.where("builds.id", "in", among ?? []))
    .orderBy("builds.created_at")
    .limit(BATCH)
    .execute();
  return rows.map(toBuild);
}
