/** Handlers that read templates; the handlers in `builds/` make them. */

import {
  type Template as ShownTemplate,
  type TemplateWithBuilds,
  type templateApi,
} from "../../shared/api/templates.ts";
import { defined } from "../../shared/defined.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { type Place, page } from "../forms/pagination.ts";
import { iso } from "../forms/time.ts";
import { isProject } from "../store/projects/projects.ts";
import { type Project } from "../store/projects/record.ts";
import type { Template } from "../store/templates/record.ts";
import type { Alias, TemplateStore } from "../store/templates/templates.ts";
import { mayUse, type TemplateNames } from "./names.ts";
import { noTemplate } from "./not-found.ts";
import { DEFAULT_TAG, parseTemplateReference, possibleTemplateReference } from "./reference.ts";

export interface TemplatesDeps {
  readonly templates: TemplateStore;
  readonly names: TemplateNames;
}

export function createTemplateHandlers({ templates, names }: TemplatesDeps): Handlers<typeof templateApi, Project> {
  async function shown(template: Template): Promise<ShownTemplate | undefined> {
    const [builds, aliases] = await Promise.all([templates.builds(template.id), templates.aliases(template.id)]);
    // The last successful build; until there is one, the last build.
    const ready = builds.find(({ status }) => status === "ready");
    const build = (await templates.tagged(template.id, DEFAULT_TAG)) ?? ready ?? builds[0];
    if (build === undefined) return undefined;
    return {
      ...templateFacts(template, aliases),
      buildID: build.id,
      cpuCount: build.cpuCount,
      memoryMB: build.memoryMB,
      diskSizeMB: build.diskSizeMB,
      createdBy: null,
      buildCount: builds.length,
      envdVersion: build.envdVersion,
      buildStatus: build.status,
    };
  }

  async function visible(caller: Project, teamId: string | undefined): Promise<Template[]> {
    ownTeam(caller, teamId, "query");
    return templates.visible(caller.id);
  }

  async function allShown(some: readonly Template[]): Promise<ShownTemplate[]> {
    // Undefined: the template was deleted after it was listed.
    return (await Promise.all(some.map(shown))).filter((template) => template !== undefined);
  }

  return {
    listTemplatesV1: async ({ query }, { caller }) => allShown(await visible(caller, query.teamID)),

    async listTemplates({ query }, { caller, header }) {
      const all = await visible(caller, query.teamID);
      return allShown(page(all, { ...query, placeOf }, header));
    },

    async findAlias({ params }, { caller }) {
      // Also 404 for a name that no template can have: SDKs ask here whether a name exists (docs/protocol.md, References).
      const reference = possibleTemplateReference(params.alias);
      const template = reference === undefined ? undefined : await names.findAny(caller, reference);
      if (reference === undefined || template === undefined) throw noTemplate(params.alias);
      if (!mayUse(caller, template)) {
        // A full name answers 403, which SDKs read as "the name is taken". An id is not a name and gets 404.
        if (reference.namespace === undefined) throw noTemplate(params.alias);
        throw new AppError("forbidden", `no access to template '${params.alias}'`);
      }
      return { templateID: template.id, public: template.public };
    },

    async getTemplate({ params, query }, { caller, header }): Promise<TemplateWithBuilds> {
      const template = await names.find(caller, parseTemplateReference(params.templateID));
      if (template === undefined) throw noTemplate(params.templateID);
      const [builds, aliases] = await Promise.all([templates.builds(template.id), templates.aliases(template.id)]);
      return {
        ...templateFacts(template, aliases),
        ...defined({ warmPool: template.warmPool }),
        builds: page(builds, { ...query, placeOf }, header).map((build) => ({
          buildID: build.id,
          status: build.status,
          createdAt: iso(build.createdAt),
          updatedAt: iso(build.updatedAt),
          ...(build.finishedAt === undefined ? {} : { finishedAt: iso(build.finishedAt) }),
          cpuCount: build.cpuCount,
          memoryMB: build.memoryMB,
          diskSizeMB: build.diskSizeMB,
          envdVersion: build.envdVersion,
        })),
      };
    },
  };
}

/** @throws {AppError} forbidden for a project that is not the caller's. */
export function ownTeam(caller: Project, teamId: string | undefined, where: "query" | "body"): void {
  if (teamId === undefined || isProject(caller, teamId)) return;
  throw new AppError("forbidden", `${where} field 'teamID' names another project than the caller's`);
}

/** Position of a template or build in its list. */
function placeOf({ createdAt, id }: Pick<Template, "createdAt" | "id">): Place {
  return { at: createdAt, name: id };
}

/** What every answer about a template has, whatever it says of its builds. */
export function templateFacts(template: Template, aliases: readonly Alias[]) {
  return {
    templateID: template.id,
    public: template.public,
    aliases: aliases.map(({ alias }) => alias),
    names: aliases.map(qualified),
    createdAt: iso(template.createdAt),
    updatedAt: iso(template.updatedAt),
    lastSpawnedAt: template.lastSpawnedAt === undefined ? null : iso(template.lastSpawnedAt),
    spawnCount: template.spawnCount,
  };
}

export function qualified({ namespace, alias }: Alias): string {
  return namespace === "" ? alias : `${namespace}/${alias}`;
}
