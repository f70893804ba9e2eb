/** What operators see of the builds of templates: who owns them, which node built them, and what of them is in the blob store. */

import type { Database } from "../tables.ts";

export interface TemplateBuild {
  readonly templateId: string;
  readonly buildId: string;
  readonly projectId: string;
  /** The node that built it. */
  readonly nodeId: string | undefined;
  /** Its memory, where its start command runs. */
  readonly snapshotId: string | undefined;
  readonly inStore: boolean;
  readonly memoryInStore: boolean;
  /** Unix milliseconds. */
  readonly builtAt: number;
}

/** All that sandboxes start from, the newest first. */
export async function templateBuilds(db: Database): Promise<TemplateBuild[]> {
  const rows = await db
    .selectFrom("builds")
    .innerJoin("templates", "templates.id", "builds.template_id")
    .select(["builds.id", "builds.template_id", "builds.node_id", "builds.snapshot_id", "templates.project_id"])
    .select(["builds.created_at", "builds.finished_at"])
    .where("builds.kind", "=", "template")
    .where("builds.status", "=", "ready")
    .where("templates.project_id", "is not", null)
    .orderBy("builds.created_at", "desc")
    .orderBy("builds.id")
    .execute();
  const refs = await db.selectFrom("blob_refs").select("snapshot_id").where("dropped_at", "is", null).execute();
  const stored = new Set(refs.map(({ snapshot_id: id }) => id));
  return rows.map((row) => ({
    templateId: row.template_id,
    buildId: row.id,
    projectId: row.project_id ?? "",
    nodeId: row.node_id ?? undefined,
    snapshotId: row.snapshot_id ?? undefined,
    inStore: stored.has(row.id),
    memoryInStore: row.snapshot_id !== null && stored.has(row.snapshot_id),
    builtAt: row.finished_at ?? row.created_at,
  }));
}
