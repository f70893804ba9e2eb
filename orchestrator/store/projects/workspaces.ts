/** SQL on workspaces, the groups of projects. One is the default; it cannot be deleted. */

import { newWorkspaceId } from "../../../shared/ids.ts";
import { lock, locks } from "../locks.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type Workspace, workspaceTable } from "./record.ts";

const { toRecord: toWorkspace } = workspaceTable;

export type WorkspaceStore = ReturnType<typeof workspaceStore>;

export function workspaceStore(db: Database, now: () => number) {
  return {
    /** Makes sure that the default workspace exists and has the projects from before there were workspaces. */
    async seed(): Promise<void> {
      await inTransaction(db, async (session) => {
        const { id } = await defaultWorkspace(session, now());
        await session.updateTable("projects").set({ workspace_id: id }).where("workspace_id", "is", null).execute();
      });
    },

    async create(name: string): Promise<Workspace> {
      const row = workspaceTable.toRow({ id: newWorkspaceId(), name, isDefault: false, createdAt: now() });
      await inTransaction(db, (session) => session.insertInto("workspaces").values(row).execute());
      return toWorkspace(row);
    },

    /** The oldest first. */
    async list(): Promise<Workspace[]> {
      return (await db.selectFrom("workspaces").selectAll().orderBy("created_at").orderBy("id").execute()).map(
        toWorkspace,
      );
    },

    async find(id: string): Promise<Workspace | undefined> {
      const row = await db.selectFrom("workspaces").selectAll().where("id", "=", id.toLowerCase()).executeTakeFirst();
      return row === undefined ? undefined : toWorkspace(row);
    },

    async rename(id: string, name: string): Promise<Workspace | undefined> {
      return inTransaction(db, async (session) => {
        const row = await session
          .updateTable("workspaces")
          .set({ name })
          .where("id", "=", id.toLowerCase())
          .returningAll()
          .executeTakeFirst();
        return row === undefined ? undefined : toWorkspace(row);
      });
    },

    /** Deletes the workspace unless it has projects or is the default one. */
    async delete(id: string): Promise<"deleted" | "unknown" | "default" | "not empty"> {
      return inTransaction(db, async (session) => {
        await lock(session, locks.workspaces);
        const row = await session
          .selectFrom("workspaces")
          .selectAll()
          .where("id", "=", id.toLowerCase())
          .executeTakeFirst();
        if (row === undefined) return "unknown";
        if (row.is_default === 1) return "default";
        const project = await session
          .selectFrom("projects")
          .select("id")
          .where("workspace_id", "=", row.id)
          .limit(1)
          .executeTakeFirst();
        if (project !== undefined) return "not empty";
        await session.deleteFrom("workspaces").where("id", "=", row.id).execute();
        return "deleted";
      });
    },
  };
}

/** The default workspace, made when missing. */
export async function defaultWorkspace(session: Session, at: number): Promise<Workspace> {
  await lock(session, locks.workspaces);
  const known = await session
    .selectFrom("workspaces")
    .selectAll()
    .where("is_default", "=", 1)
    .orderBy("created_at")
    .executeTakeFirst();
  if (known !== undefined) return toWorkspace(known);
  const row = workspaceTable.toRow({ id: newWorkspaceId(), name: "default", isDefault: true, createdAt: at });
  await session.insertInto("workspaces").values(row).execute();
  return toWorkspace(row);
}
