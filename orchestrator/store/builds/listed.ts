/** SQL that lists builds of a project over all its templates. */

import type { BuildStatus } from "../../../shared/states/build-status.ts";
import type { Database } from "../tables.ts";
import { type Build, toBuild } from "./record.ts";

export interface BuildPage {
  readonly projectId: string;
  /** One build, or those of one template; undefined: all. */
  readonly only?: { readonly buildId: string } | { readonly templateId: string };
  readonly statuses: readonly BuildStatus[];
  /** The place of the last build of the page before. */
  readonly after?: { readonly at: number; readonly id: string };
  readonly most: number;
}

export function buildListing(db: Database) {
  const ofProject = (projectId: string) =>
    db
      .selectFrom("builds")
      .innerJoin("templates", "templates.id", "builds.template_id")
      .selectAll("builds")
      .where("templates.project_id", "=", projectId)
      .where("templates.kind", "=", "template")
      .where("builds.kind", "=", "template");

  return {
    /** Newest first. */
    async page({ projectId, only, statuses, after, most }: BuildPage): Promise<Build[]> {
      let query = ofProject(projectId).where("builds.status", "in", statuses);
      if (only !== undefined) {
        query =
          "buildId" in only
            ? query.where("builds.id", "=", only.buildId)
            : query.where("builds.template_id", "=", only.templateId);
      }
      if (after !== undefined) {
        query = query.where((where) =>
          where.or([
            where("builds.created_at", "<", after.at),
            where.and([where("builds.created_at", "=", after.at), where("builds.id", "<", after.id)]),
          ]),
        );
      }
      const rows = await query.orderBy("builds.created_at", "desc").orderBy("builds.id", "desc").limit(most).execute();
      return rows.map(toBuild);
    },

    /** Those of these builds that are of the project. */
    async some(projectId: string, ids: readonly string[]): Promise<Build[]> {
      if (ids.length === 0) return [];
      return (await ofProject(projectId).where("builds.id", "in", ids).execute()).map(toBuild);
    },
  };
}
