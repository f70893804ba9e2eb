/** SQL on projects, which the API calls teams. */

import { newProjectId, newUuid } from "../../shared/ids.ts";
import type { Database, ProjectRow } from "./tables.ts";

export interface Project {
  /** UUID. */
  readonly id: string;
  /** `prj_…` */
  readonly publicId: string;
  readonly name: string;
  readonly slug: string;
  /** The project's own limits; undefined: the platform's. */
  readonly maxSandboxes: number | undefined;
  readonly maxSandboxHours: number | undefined;
  readonly maxCpu: number | undefined;
  readonly maxMemoryMb: number | undefined;
  readonly maxDiskMb: number | undefined;
  readonly maxBuilds: number | undefined;
  readonly createdAt: number;
}

export type ProjectStore = ReturnType<typeof projectStore>;

export function projectStore(db: Database, now: () => number) {
  return {
    async create(name: string): Promise<Project> {
      const base = slugOf(name);
      for (let attempt = 0; ; attempt++) {
        const row: ProjectRow = {
          id: newUuid(),
          public_id: newProjectId(),
          name,
          slug: attempt === 0 ? base : `${base}-${attempt + 1}`,
          max_sandboxes: null,
          max_sandbox_hours: null,
          max_cpu: null,
          max_memory_mb: null,
          max_disk_mb: null,
          max_builds: null,
          created_at: now(),
        };
        const result = await db
          .insertInto("projects")
          .values(row)
          .onConflict((conflict) => conflict.column("slug").doNothing())
          .executeTakeFirst();
        if (result.numInsertedOrUpdatedRows === 1n) return toProject(row);
      }
    },

    async list(): Promise<Project[]> {
      return (await db.selectFrom("projects").selectAll().orderBy("created_at").execute()).map(toProject);
    },

    /** By UUID or `prj_` id, in any case. */
    async find(reference: string): Promise<Project | undefined> {
      const id = reference.toLowerCase();
      const column = id.startsWith("prj_") ? "public_id" : "id";
      const row = await db.selectFrom("projects").selectAll().where(column, "=", id).executeTakeFirst();
      return row === undefined ? undefined : toProject(row);
    },
  };
}

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
    maxSandboxes: row.max_sandboxes ?? undefined,
    maxSandboxHours: row.max_sandbox_hours ?? undefined,
    maxCpu: row.max_cpu ?? undefined,
    maxMemoryMb: row.max_memory_mb ?? undefined,
    maxDiskMb: row.max_disk_mb ?? undefined,
    maxBuilds: row.max_builds ?? undefined,
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
