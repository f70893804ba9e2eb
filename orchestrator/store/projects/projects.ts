/** SQL on projects, which the API calls teams. */

import { AppError } from "../../../shared/http/errors.ts";
import { newProjectId, newUuid } from "../../../shared/ids.ts";
import { concernsProject } from "../audit/scope.ts";
import type { Changes } from "../changes/changes.ts";
import { lock, locks } from "../locks.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type LimitChange, limitColumns } from "./limits.ts";
import { type Project, type ProjectStatus, projectTable, toProject } from "./record.ts";
import { defaultWorkspace } from "./workspaces.ts";

export interface NewProject {
  /** Undefined: made from the name. */
  readonly slug?: string | undefined;
  readonly region?: string | undefined;
  readonly nodeLabels?: Readonly<Record<string, string>> | undefined;
  /** Undefined: the default workspace. */
  readonly workspaceId?: string | undefined;
  readonly limits?: LimitChange | undefined;
}

export interface ProjectChange {
  readonly name?: string | undefined;
  readonly nodeLabels?: Readonly<Record<string, string>> | undefined;
  readonly workspaceId?: string | undefined;
  readonly limits?: LimitChange | undefined;
}

export type ProjectStore = ReturnType<typeof projectStore>;

export function projectStore(
  db: Database,
  { now, changes }: { readonly now: () => number; readonly changes: Changes },
) {
  return {
    /** @throws {AppError} conflict for a slug that another project has, `not_found` for an unknown workspace */
    async create(name: string, given: NewProject = {}): Promise<Project> {
      return inTransaction(db, (session) => create(session, name, given, now()));
    },

    /** The oldest first. */
    async list(workspaceId?: string): Promise<Project[]> {
      let query = db.selectFrom("projects").selectAll();
      if (workspaceId !== undefined) query = query.where("workspace_id", "=", workspaceId);
      return (await query.orderBy("created_at").orderBy("id").execute()).map(toProject);
    },

    /** By UUID or `prj_` id, in any case. */
    async find(reference: string): Promise<Project | undefined> {
      const id = reference.toLowerCase();
      const column = id.startsWith("prj_") ? "public_id" : "id";
      const row = await db.selectFrom("projects").selectAll().where(column, "=", id).executeTakeFirst();
      if (row === undefined) return undefined;
      concernsProject(row.id);
      return toProject(row);
    },

    async findBySlug(slug: string): Promise<Project | undefined> {
      const row = await db.selectFrom("projects").selectAll().where("slug", "=", slug).executeTakeFirst();
      return row === undefined ? undefined : toProject(row);
    },

    /**
     * Undefined: the project does not exist or is being deleted.
     * @throws {AppError} not_found for an unknown workspace
     */
    async change(
      id: string,
      { name, workspaceId, nodeLabels, limits = {} }: ProjectChange,
    ): Promise<Project | undefined> {
      return changes.throughout(async (session) => {
        const workspace = workspaceId === undefined ? undefined : await known(session, workspaceId);
        const row = await session
          .updateTable("projects")
          .set((update) => ({
            name: name ?? update.ref("name"),
            ...projectTable.toColumns({ nodeLabels }),
            ...(workspace === undefined ? {} : { workspace_id: workspace.id }),
            ...limitColumns(limits),
          }))
          .where("id", "=", id)
          .where("status", "!=", "deleting")
          .returningAll()
          .executeTakeFirst();
        if (row === undefined) return undefined;
        await changes.note(session, "project", id);
        return toProject(row);
      });
    },

    /** Undefined: the project does not exist or is being deleted. */
    async setStatus(
      id: string,
      status: Exclude<ProjectStatus, "deleting">,
      reason: string | undefined,
    ): Promise<Project | undefined> {
      return changes.throughout(async (session) => {
        const row = await session
          .updateTable("projects")
          .set({ status, status_reason: reason ?? null })
          .where("id", "=", id)
          .where("status", "!=", "deleting")
          .returningAll()
          .executeTakeFirst();
        if (row === undefined) return undefined;
        await changes.note(session, "project", id);
        return toProject(row);
      });
    },
  };
}

async function create(
  session: Session,
  name: string,
  { slug: own, region, nodeLabels, workspaceId, limits = {} }: NewProject,
  at: number,
): Promise<Project> {
  const base = own ?? slugOf(name);
  const workspace = workspaceId === undefined ? await defaultWorkspace(session, at) : await known(session, workspaceId);
  for (let attempt = 0; ; attempt++) {
    const row = {
      ...projectTable.toRow({
        id: newUuid(),
        publicId: newProjectId(),
        name,
        slug: attempt === 0 ? base : `${base}-${attempt + 1}`,
        workspaceId: workspace.id,
        region,
        nodeLabels,
        createdAt: at,
      }),
      ...limitColumns(limits),
    };
    const result = await session
      .insertInto("projects")
      .values(row)
      .onConflict((conflict) => conflict.column("slug").doNothing())
      .executeTakeFirst();
    if (result.numInsertedOrUpdatedRows === 1n) return toProject(row);
    if (own !== undefined) throw new AppError("conflict", `body field 'slug': another project has the slug '${own}'`);
  }
}

async function known(session: Session, workspaceId: string): Promise<{ readonly id: string }> {
  // Against its deletion, until the project is in it.
  await lock(session, locks.workspaces);
  const id = workspaceId.toLowerCase();
  const row = await session.selectFrom("workspaces").select("id").where("id", "=", id).executeTakeFirst();
  if (row === undefined) throw new AppError("not_found", `workspace '${workspaceId}' not found`);
  return row;
}

/**
 * Whether the text is the project's UUID or `prj_` id. Upper and lower case are the same, as in every UUID
 * (docs/protocol.md, Projects).
 */
export function isProject({ id, publicId }: Project, text: string): boolean {
  return [id, publicId].includes(text.toLowerCase());
}

// A slug is the namespace of template names, so it obeys the grammar of names.
function slugOf(name: string): string {
  const slug = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 48);
  return slug === "" ? "project" : slug;
}
