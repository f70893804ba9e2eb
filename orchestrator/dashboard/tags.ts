/**
 * Handlers that read tags in the dashboard's forms. The platform keeps the build that a tag names now and none before it, so
 * each tag has one assignment.
 */

import { createHash } from "node:crypto";
import type { dashboardTagApi } from "../../shared/api/dashboard.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { iso } from "../forms/time.ts";
import type { Project } from "../store/projects/record.ts";
import type { TagView } from "../store/templates/tags.ts";
import { noTemplate } from "../templates/not-found.ts";
import { parseTag, parseTemplateReference } from "../templates/reference.ts";
import type { DashboardDeps } from "./builds.ts";
import { byNameAscending, byNameDescending, byTimeAscending, byTimeDescending, type Place, pageOf } from "./cursors.ts";

type Sort = "latest_desc" | "latest_asc" | "name_asc" | "name_desc";

const ORDERS: Readonly<Record<Sort, (a: Place, b: Place) => number>> = {
  latest_desc: byTimeDescending,
  latest_asc: byTimeAscending,
  name_asc: byNameAscending,
  name_desc: byNameDescending,
};

export function createDashboardTags({ store, names }: DashboardDeps): Handlers<typeof dashboardTagApi, Project> {
  /** @throws {AppError} template_not_found */
  async function tagsOf(caller: Project, text: string): Promise<TagView[]> {
    const template = await names.find(caller, parseTemplateReference(text));
    if (template?.kind !== "template") throw noTemplate(text);
    return store.tags.list(template.id);
  }

  /** Undefined: the build was removed after the tag was read. */
  async function assignment({ tag, buildId, createdAt }: TagView) {
    const build = await store.templates.build(buildId);
    if (build === undefined) return undefined;
    return {
      assignmentId: assignmentId(build.templateId, tag, buildId, createdAt),
      buildId,
      assignedAt: iso(createdAt),
      buildCreatedAt: iso(build.createdAt),
      buildFinishedAt: build.finishedAt === undefined ? null : iso(build.finishedAt),
    };
  }

  async function assignments(tags: readonly TagView[]) {
    return (await Promise.all(tags.map(assignment))).filter((each) => each !== undefined);
  }

  return {
    async dashboardTagGroups({ params, query }, { caller }) {
      const { tagsLimit = 25, tagsCursor: cursor, search = "", sort = "latest_desc" } = query;
      const tags = (await tagsOf(caller, params.templateID)).filter(({ tag }) => tag.includes(search));
      const { items, nextCursor } = pageOf(tags, {
        sort,
        cursor,
        limit: tagsLimit,
        placeOf: ({ tag, createdAt }) => ({ at: createdAt, name: tag }),
        compare: ORDERS[sort],
      });
      const groups = items.map(async (each) => ({
        tag: each.tag,
        assignments: await assignments([each]),
        hasMore: false,
      }));
      return { tags: await Promise.all(groups), nextCursor };
    },

    async dashboardTagCount({ params }, { caller }) {
      return { total: (await tagsOf(caller, params.templateID)).length };
    },

    async dashboardTagExists({ params, query }, { caller }) {
      const normalizedTag = parseTag(query.tag);
      const tags = await tagsOf(caller, params.templateID);
      return { exists: tags.some(({ tag }) => tag === normalizedTag), normalizedTag };
    },

    async dashboardTagAssignments({ params, query }, { caller }) {
      const wanted = parseTag(params.tag);
      const tags = (await tagsOf(caller, params.templateID)).filter(({ tag }) => tag === wanted);
      const { items, nextCursor } = pageOf(await assignments(tags), {
        cursor: query.cursor,
        limit: query.limit ?? 50,
        placeOf: ({ assignmentId: name, assignedAt }) => ({ at: Date.parse(assignedAt), name }),
        compare: byTimeDescending,
      });
      return { data: items, nextCursor };
    },
  };
}

/** The same for the same assignment, in the form of a UUID (RFC 9562, version 8). */
function assignmentId(...parts: readonly (string | number)[]): string {
  const hex = createHash("sha256").update(parts.join("\n")).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `a${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    "-",
  );
}
