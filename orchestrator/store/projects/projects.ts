/** SQL on projects, which the API calls teams. */

import { AppError } from "../../../shared/http/errors.ts";
import { newProjectId, newUuid } from "../../../shared/ids.ts";
import { concernsProject } from "../audit/scope.ts";
import type { Database, Session } from "../tables.ts";
import { type LimitChange, limitColumns, type OwnLimits, ownLimits } from "./limits.ts";
import type { ProjectRow, ProjectStatus } from "./row.ts";
import { defaultWorkspace } from "./workspaces.ts";

export interface Project {
  /** UUID. */
  readonly id: string;
  /** `prj_…` */
  readonly publicId: string;
  readonly name: string;
  readonly slug: string;
  /** `wrk_…`; undefined in a database that has no default workspace yet. */
  readonly workspaceId: string | undefined;
  /** The only nodes that run its sandboxes are those of this region; undefined: any node. */
  readonly region: string | undefined;
  readonly status: ProjectStatus;
  /** Why it is disabled or banned. */
  readonly statusReason: string | undefined;
  readonly limits: OwnLimits;
  readonly createdAt: number;
}

export interface NewProject {
  /** Undefined: made from the name. */
  readonly slug?: string | undefined;
  readonly region?: string | undefined;
  /** Undefined: the default workspace. */
  readonly workspaceId?: string | undefined;
  readonly limits?: LimitChange | undefined;
}

export interface ProjectChange {
  readonly name?: string | undefined;
  readonly workspaceId?: string | undefined;
  readonly limits?: LimitChange | undefined;
}

export type ProjectStore = ReturnType<typeof projectStore>;

export function projectStore(db: Database, now: () => number) {
  return {
    /** @throws {AppError} conflict for a slug that another project has, `not_found` for an unknown workspace */
    async create(name: string, given: NewProject = {}): Promise<Project> {
      return db.transaction().execute((session) => create(session, name, given, now()));
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

    /**
     * Undefined: the project does not exist or is being deleted.
     * @throws {AppError} not_found for an unknown workspace
     */
    async change(id: string, { name, workspaceId, limits = {} }: ProjectChange): Promise<Project | undefined> {
      return db.transaction().execute(async (session) => {
        const workspace = workspaceId === undefined ? undefined : await known(session, workspaceId);
        const row = await session
          .updateTable("projects")
          .set((update) => ({
            name: name ?? update.ref("name"),
            ...(workspace === undefined ? {} : { workspace_id: workspace.id }),
            ...limitColumns(limits),
          }))
          .where("id", "=", id)
          .where("status", "!=", "deleting")
          .returningAll()
          .executeTakeFirst();
        return row === undefined ? undefined : toProject(row);
      });
    },

    /** Undefined: the project does not exist or is being deleted. */
    async setStatus(
      id: string,
      status: Exclude<ProjectStatus, "deleting">,
      reason: string | undefined,
    ): Promise<Project | undefined> {
      return db.transaction().execute(async (session) => {
        const row = await session
          .updateTable("projects")
          .set({ status, status_reason: reason ?? null })
          .where("id", "=", id)
          .where("status", "!=", "deleting")
          .returningAll()
          .executeTakeFirst();
        return row === undefined ? undefined : toProject(row);
      });
    },
  };
}

async function create(
  session: Session,
  name: string,
  { slug: own, region, workspaceId, limits = {} }: NewProject,
  at: number,
): Promise<Project> {
  const base = own ?? slugOf(name);
  const workspace = workspaceId === undefined ? await defaultWorkspace(session, at) : await known(session, workspaceId);
  for (let attempt = 0; ; attempt++) {
    const row: ProjectRow = {
      id: newUuid(),
      public_id: newProjectId(),
      name,
      slug: attempt === 0 ? base : `${base}-${attempt + 1}`,
      workspace_id: workspace.id,
      region: region ?? null,
      status: "active",
      status_reason: null,
      ...NO_LIMITS,
      ...limitColumns(limits),
      created_at: at,
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
  const id = workspaceId.toLowerCase();
  const row = await session.selectFrom("workspaces").select("id").where("id", "=", id).executeTakeFirst();
  if (row === undefined) throw new AppError("not_found", `workspace '${workspaceId}' not found`);
  return row;
}

const NO_LIMITS = {
  max_sandboxes: null,
  max_starts_per_minute: null,
  max_total_cpu: null,
  max_total_memory_mb: null,
  max_total_disk_mb: null,
  max_sandbox_hours: null,
  max_cpu: null,
  max_memory_mb: null,
  max_disk_mb: null,
  max_builds: null,
  max_snapshots: null,
  max_volumes: null,
  max_egress_rules: null,
};

/**
 * Whether the text is the project's UUID or `prj_` id. Upper and lower case are the same, as in every UUID
 * (docs/protocol.md, Projects).
 */
export function isProject({ id, publicId }: Project, text: string): boolean {
  return [id, publicId].includes(text.toLowerCase());
}

export function toProject(row: ProjectRow): Project {
  return {
    id: row.id,
    publicId: row.public_id,
    name: row.name,
    slug: row.slug,
    workspaceId: row.workspace_id ?? undefined,
    region: row.region ?? undefined,
    status: row.status,
    statusReason: row.status_reason ?? undefined,
    limits: ownLimits(row),
    createdAt: row.created_at,
  };
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
