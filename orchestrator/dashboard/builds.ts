/** Handlers that list builds over all templates of a project. */

import { BUILD_STATES, type dashboardBuildApi } from "../../shared/api/dashboard.ts";
import { defined } from "../../shared/defined.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { isUuid } from "../../shared/ids.ts";
import type { BuildStatus } from "../../shared/states/build-status.ts";
import { iso } from "../forms/time.ts";
import type { BuildPage } from "../store/builds/listed.ts";
import type { Build } from "../store/builds/record.ts";
import type { Project } from "../store/projects/record.ts";
import type { Store } from "../store/store.ts";
import { qualified } from "../templates/handlers.ts";
import type { TemplateNames } from "../templates/names.ts";
import { possibleTemplateReference } from "../templates/reference.ts";
import { fromCursor, toCursor } from "./cursors.ts";

const MOST_IDS = 100;

type State = (typeof BUILD_STATES)[number];

/** The platform's states of a build that each of the dashboard's is. */
const STATUSES: Readonly<Record<State, readonly BuildStatus[]>> = {
  building: ["waiting", "building"],
  failed: ["error"],
  success: ["ready"],
};

export interface DashboardDeps {
  readonly store: Store;
  readonly names: TemplateNames;
}

export function createDashboardBuilds({ store, names }: DashboardDeps): Handlers<typeof dashboardBuildApi, Project> {
  /** What the filter means. Undefined: it names nothing of the project. */
  async function filter(caller: Project, text: string): Promise<Pick<BuildPage, "only"> | undefined> {
    if (text === "") return {};
    if (isUuid(text)) return { only: { buildId: text.toLowerCase() } };
    const reference = possibleTemplateReference(text);
    const template = reference === undefined ? undefined : await names.find(caller, reference);
    return template?.projectId === caller.id ? { only: { templateId: template.id } } : undefined;
  }

  async function firstAlias(templateId: string): Promise<string | undefined> {
    return (await store.templates.aliases(templateId))[0]?.alias;
  }

  return {
    async dashboardBuilds({ query }, { caller }) {
      const { limit = 50, cursor, build_id_or_template: text = "", statuses } = query;
      const place = fromCursor(cursor);
      const wanted = await filter(caller, text.trim());
      if (wanted === undefined) return { data: [], nextCursor: null };
      const found = await store.buildListing.page({
        projectId: caller.id,
        statuses: readStates(statuses).flatMap((state) => STATUSES[state]),
        most: limit + 1,
        ...wanted,
        ...defined({ after: place === undefined ? undefined : { at: place.at, id: place.name } }),
      });
      const builds = found.slice(0, limit);
      const last = builds.at(-1);
      const ids = [...new Set(builds.map(({ templateId }) => templateId))];
      const aliases = new Map(await Promise.all(ids.map(async (id) => [id, await firstAlias(id)] as const)));
      return {
        data: builds.map((build) => ({
          id: build.id,
          template: aliases.get(build.templateId) ?? build.templateId,
          templateId: build.templateId,
          ...facts(build),
          createdAt: iso(build.createdAt),
          cpuCount: build.cpuCount,
          memoryMB: build.memoryMB,
          diskSizeMB: build.diskSizeMB,
          envdVersion: build.envdVersion,
        })),
        nextCursor:
          last === undefined || found.length <= limit ? null : toCursor({ at: last.createdAt, name: last.id }),
      };
    },

    async dashboardBuildStatuses({ query }, { caller }) {
      const ids = [...new Set(query.build_ids.split(",").map((id) => id.trim().toLowerCase()))];
      const wrong = ids.find((id) => !isUuid(id));
      if (wrong !== undefined)
        throw new AppError("bad_request", `query field 'build_ids': '${wrong}' is no build's id`);
      if (ids.length > MOST_IDS)
        throw new AppError(
          "bad_request",
          `query field 'build_ids': at most ${MOST_IDS} builds; ${ids.length} are named`,
        );
      const builds = await store.buildListing.some(caller.id, ids);
      return { buildStatuses: builds.map((build) => ({ id: build.id, ...facts(build) })) };
    },

    async dashboardBuild({ params }, { caller }) {
      const [build] = await store.buildListing.some(caller.id, [params.build_id.toLowerCase()]);
      if (build === undefined) throw new AppError("template_not_found", `build '${params.build_id}' not found`);
      const names = (await store.templates.aliases(build.templateId)).map(qualified);
      return { names, createdAt: iso(build.createdAt), ...facts(build) };
    },
  };
}

function facts({ status, finishedAt, reason }: Build) {
  const state = BUILD_STATES.find((each) => STATUSES[each].includes(status)) ?? "building";
  return {
    status: state,
    finishedAt: finishedAt === undefined ? null : iso(finishedAt),
    statusMessage: state === "failed" ? (reason?.message ?? null) : null,
  };
}

/** @throws {AppError} bad_request */
function readStates(text: string | undefined): readonly State[] {
  if (text === undefined || text.trim() === "") return BUILD_STATES;
  return text.split(",").map((part) => {
    const state = BUILD_STATES.find((each) => each === part.trim());
    if (state !== undefined) return state;
    throw new AppError("bad_request", `query field 'statuses': '${part.trim()}' is none of ${BUILD_STATES.join(", ")}`);
  });
}
