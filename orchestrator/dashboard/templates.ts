/** Handlers that read templates in the dashboard's forms. */

import type { dashboardTemplateApi } from "../../shared/api/dashboard.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { iso } from "../forms/time.ts";
import type { Build } from "../store/builds/record.ts";
import type { Project } from "../store/projects/record.ts";
import type { Template } from "../store/templates/record.ts";
import type { Alias } from "../store/templates/templates.ts";
import { qualified, templateFacts } from "../templates/handlers.ts";
import { noTemplate } from "../templates/not-found.ts";
import { DEFAULT_TAG, parseTemplateReference } from "../templates/reference.ts";
import type { DashboardDeps } from "./builds.ts";
import { byTimeAscending, byTimeDescending, pageOf } from "./cursors.ts";

/** In the place of a build's id where there is no build. */
const NO_BUILD = "00000000-0000-0000-0000-000000000000";

interface Named {
  readonly template: Template;
  readonly aliases: readonly Alias[];
}

export function createDashboardTemplates({
  store,
  names,
}: DashboardDeps): Handlers<typeof dashboardTemplateApi, Project> {
  const { templates } = store;

  async function named(template: Template): Promise<Named> {
    return { template, aliases: await templates.aliases(template.id) };
  }

  async function withBuild({ template, aliases }: Named) {
    const [build, builds] = await Promise.all([
      templates.tagged(template.id, DEFAULT_TAG),
      templates.builds(template.id),
    ]);
    return { template, aliases, build, buildCount: builds.length };
  }

  return {
    async dashboardTemplates({ query }, { caller }) {
      const { public: isPublic, search = "", sort = "created_at_desc", limit = 50, cursor } = query;
      const text = search.trim().toLowerCase();
      const all = await Promise.all((await templates.visible(caller.id)).map(named));
      const wanted = all.filter(
        (each) => (isPublic === undefined || each.template.public === isPublic) && hasText(each, text),
      );
      const { items, nextCursor } = pageOf(wanted, {
        sort,
        cursor,
        limit,
        placeOf: ({ template: { id, createdAt, updatedAt } }) => ({
          at: sort.startsWith("created") ? createdAt : updatedAt,
          name: id,
        }),
        compare: sort.endsWith("_desc") ? byTimeDescending : byTimeAscending,
      });
      const shown = await Promise.all(items.map(withBuild));
      return {
        data: shown.map((each) => ({
          ...facts(each),
          cpuCount: each.build?.cpuCount ?? 0,
          memoryMB: each.build?.memoryMB ?? 0,
          createdBy: null,
          isDefault: isDefault(each),
        })),
        nextCursor,
      };
    },

    async dashboardDefaultTemplates(_request, { caller }) {
      const all = await Promise.all((await templates.visible(caller.id)).map(named));
      const found = await Promise.all(all.filter(isDefault).map(withBuild));
      return {
        templates: found.flatMap(({ template, aliases, build, buildCount }) =>
          build === undefined
            ? []
            : [
                {
                  id: template.id,
                  aliases: aliases.map(({ alias, namespace }) => ({
                    alias,
                    namespace: namespace === "" ? null : namespace,
                  })),
                  buildId: build.id,
                  ramMb: build.memoryMB,
                  vcpu: build.cpuCount,
                  totalDiskSizeMb: build.diskSizeMB,
                  envdVersion: build.envdVersion,
                  createdAt: iso(template.createdAt),
                  public: template.public,
                  buildCount,
                  spawnCount: template.spawnCount,
                },
              ],
        ),
      };
    },

    async dashboardTemplate({ params }, { caller }) {
      const template = await names.find(caller, parseTemplateReference(params.templateID));
      if (template?.kind !== "template") throw noTemplate(params.templateID);
      const shown = await withBuild(await named(template));
      return {
        ...facts(shown),
        cpuCount: shown.build?.cpuCount ?? null,
        memoryMB: shown.build?.memoryMB ?? null,
      };
    },
  };
}

function facts({
  template,
  aliases,
  build,
  buildCount,
}: Named & { readonly build: Build | undefined; readonly buildCount: number }) {
  return {
    ...templateFacts(template, aliases),
    buildID: build?.id ?? NO_BUILD,
    buildCount,
    diskSizeMB: build?.diskSizeMB ?? null,
    envdVersion: build?.envdVersion ?? null,
  };
}

/** Whether every project gets the template by a name of its own. */
function isDefault({ aliases }: Named): boolean {
  return aliases.some(({ namespace }) => namespace === "");
}

function hasText({ template, aliases }: Named, text: string): boolean {
  return [template.id, ...aliases.map(qualified)].some((each) => each.toLowerCase().includes(text));
}
