/** SQL on the deletion of projects: begun with its keys, finished when nothing of the project is left. */

import type { Changes } from "../changes/changes.ts";
import { lock, locks } from "../locks.ts";
import type { Database } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type Project, type ProjectDeletion, projectDeletionTable } from "./record.ts";
import { remaining } from "./use.ts";

/** Records of ended sandboxes, or events, that one transaction deletes. */
const BATCH = 500;

export function projectDeletionStore(
  db: Database,
  { now, changes }: { readonly now: () => number; readonly changes: Changes },
) {
  return {
    /** Closes the project and deletes its keys. No effect on a project that is being deleted or does not exist. */
    async begin({ id }: Pick<Project, "id">): Promise<void> {
      await changes.throughout(async (session) => {
        const row = await session
          .updateTable("projects")
          .set({ status: "deleting", status_reason: null })
          .where("id", "=", id)
          .where("status", "!=", "deleting")
          .returning(["public_id", "name"])
          .executeTakeFirst();
        if (row === undefined) return;
        await session.deleteFrom("api_keys").where("project_id", "=", id).execute();
        // Their deliveries go with them: nobody is left who could read or change them.
        await session.deleteFrom("webhooks").where("project_id", "=", id).execute();
        await session
          .insertInto("project_deletions")
          .values({ project_id: id, ...row, begun_at: now(), finished_at: null })
          .execute();
        await changes.note(session, "project", id);
      });
    },

    /** By UUID or `prj_` id, in any case. */
    async find(reference: string): Promise<ProjectDeletion | undefined> {
      const id = reference.toLowerCase();
      const row = await db
        .selectFrom("project_deletions")
        .selectAll()
        .where(id.startsWith("prj_") ? "public_id" : "project_id", "=", id)
        .executeTakeFirst();
      return row === undefined ? undefined : projectDeletionTable.toRecord(row);
    },

    /** The UUIDs of the projects that are being deleted, the oldest deletion first. */
    async underWay(): Promise<string[]> {
      const rows = await db
        .selectFrom("project_deletions")
        .select("project_id")
        .where("finished_at", "is", null)
        .orderBy("begun_at")
        .orderBy("project_id")
        .execute();
      return rows.map((row) => row.project_id);
    },

    /** The project's templates and snapshots. */
    async templates(projectId: string): Promise<{ readonly id: string; readonly kind: "template" | "snapshot" }[]> {
      return db
        .selectFrom("templates")
        .select(["id", "kind"])
        .where("project_id", "=", projectId)
        .orderBy("id")
        .execute();
    },

    /** Closes the templates to other projects, whose sandboxes may still use them. */
    async unpublish(projectId: string): Promise<void> {
      await db.updateTable("templates").set({ public: 0 }).where("project_id", "=", projectId).execute();
    },

    /** Deletes some records of ended sandboxes and some events. False: there is nothing more to delete. */
    async forgetHistory(projectId: string): Promise<boolean> {
      return inTransaction(db, async (session) => {
        const gone = await session
          .deleteFrom("sandboxes")
          .where("id", "in", (from) =>
            from
              .selectFrom("sandboxes as ended")
              .select("ended.id")
              .where("ended.project_id", "=", projectId)
              .where("ended.state", "=", "gone")
              .limit(BATCH),
          )
          .executeTakeFirst();
        const events = await session
          .deleteFrom("events")
          .where("id", "in", (from) =>
            from.selectFrom("events as old").select("old.id").where("old.project_id", "=", projectId).limit(BATCH),
          )
          .executeTakeFirst();
        return gone.numDeletedRows > 0n || events.numDeletedRows > 0n;
      });
    },

    /** Deletes the project itself. False: something of it is left, for one what a request under way has added. */
    async finish(projectId: string): Promise<boolean> {
      return inTransaction(db, async (session) => {
        await lock(session, locks.project(projectId));
        const left = await remaining(session, projectId);
        if (Object.values(left).some((count) => count > 0)) return false;
        await session.deleteFrom("projects").where("id", "=", projectId).where("status", "=", "deleting").execute();
        await session
          .updateTable("project_deletions")
          .set({ finished_at: now() })
          .where("project_id", "=", projectId)
          .where("finished_at", "is", null)
          .execute();
        return true;
      });
    },
  };
}
