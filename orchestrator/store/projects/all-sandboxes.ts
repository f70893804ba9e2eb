/** The sandboxes of all projects, for operators. Reads only. */

import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import type { Database } from "../tables.ts";

export interface AllSandboxesFilter {
  readonly states: readonly SandboxState[];
  readonly projectId?: string | undefined;
  readonly nodeId?: string | undefined;
}

export interface AnySandbox {
  readonly id: string;
  readonly projectId: string;
  /** Undefined: the project is deleted. */
  readonly project: { readonly publicId: string; readonly name: string } | undefined;
  readonly nodeId: string;
  readonly state: SandboxState;
  readonly templateId: string;
  readonly createdAt: number;
  readonly startedAt: number;
  readonly endAt: number;
  readonly endedAt: number | undefined;
  readonly cpuCount: number;
  readonly memoryMB: number;
  readonly diskSizeMB: number;
}

export function allSandboxStore(db: Database) {
  return {
    /** The newest first. `after`: the last sandbox of the page before, which need not exist any more. */
    async list(
      { states, projectId, nodeId }: AllSandboxesFilter,
      page: {
        readonly limit: number;
        readonly after?: { readonly createdAt: number; readonly id: string } | undefined;
      },
    ): Promise<AnySandbox[]> {
      let query = db
        .selectFrom("sandboxes")
        .leftJoin("projects", "projects.id", "sandboxes.project_id")
        .select(["projects.public_id", "projects.name"])
        .select([
          "sandboxes.id",
          "sandboxes.project_id",
          "sandboxes.node_id",
          "sandboxes.state",
          "sandboxes.template_id",
          "sandboxes.created_at",
          "sandboxes.started_at",
          "sandboxes.end_at",
          "sandboxes.ended_at",
          "sandboxes.cpu_count",
          "sandboxes.memory_mb",
          "sandboxes.disk_mb",
        ])
        .where("sandboxes.state", "in", states);
      if (projectId !== undefined) query = query.where("sandboxes.project_id", "=", projectId);
      if (nodeId !== undefined) query = query.where("sandboxes.node_id", "=", nodeId);
      const { after } = page;
      if (after !== undefined) {
        query = query.where((where) =>
          where.or([
            where("sandboxes.created_at", "<", after.createdAt),
            where.and([where("sandboxes.created_at", "=", after.createdAt), where("sandboxes.id", ">", after.id)]),
          ]),
        );
      }
      const rows = await query
        .orderBy("sandboxes.created_at", "desc")
        .orderBy("sandboxes.id")
        .limit(page.limit)
        .execute();
      return rows.map((row) => ({
        id: row.id,
        projectId: row.project_id,
        project: row.public_id === null || row.name === null ? undefined : { publicId: row.public_id, name: row.name },
        nodeId: row.node_id,
        state: row.state,
        templateId: row.template_id,
        createdAt: row.created_at,
        startedAt: row.started_at,
        endAt: row.end_at,
        endedAt: row.ended_at ?? undefined,
        cpuCount: row.cpu_count,
        memoryMB: row.memory_mb,
        diskSizeMB: row.disk_mb,
      }));
    },
  };
}
