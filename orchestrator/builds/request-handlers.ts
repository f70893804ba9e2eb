/** Handlers that create a build: its template, and the upload URLs for the files of its COPY steps. */

import type { buildApi } from "../../shared/api/builds.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { ENVD_VERSION } from "../../shared/version.ts";
import type { Base } from "../base/base.ts";
import type { OrchestratorConfig } from "../config.ts";
import type { Project } from "../store/projects/record.ts";
import type { Store } from "../store/store.ts";
import { ownTeam, qualified } from "../templates/handlers.ts";
import type { TemplateNames } from "../templates/names.ts";
import { ownTemplate } from "../templates/ownership.ts";
import {
  readTemplateRequest,
  type TemplateAsk,
  type TemplateLimits,
  type TemplateSizes,
} from "../templates/request.ts";
import type { Archives } from "./uploads/archives.ts";
import { uploadUrl } from "./uploads/url.ts";

export interface BuildRequestsDeps {
  readonly base: Base;
  readonly store: Store;
  readonly names: TemplateNames;
  readonly archives: Archives;
}

type BuildRequestHandlers = Pick<Handlers<typeof buildApi, Project>, "requestBuild" | "requestBuildV2" | "buildFiles">;

export function createBuildRequestHandlers(deps: BuildRequestsDeps): BuildRequestHandlers {
  const { store } = deps;
  const { config, seeds, now } = deps.base;

  async function request(caller: Project, body: TemplateAsk & { readonly teamID?: string }) {
    ownTeam(caller, body.teamID, "body");
    const asked = readTemplateRequest(body, {
      slug: caller.slug,
      limits: limitsOf(caller, config),
      defaults: defaultSizes(config),
    });
    const { name, tags, resources } = asked;
    const made = await store.builds.request({
      projectId: caller.id,
      namespace: caller.slug,
      name,
      tags,
      resources,
      envdVersion: ENVD_VERSION,
    });
    if (made === undefined) throw new AppError("bad_request", `body field 'name': '${name}' is the name of a snapshot`);
    return { ...made, tags };
  }

  return {
    async requestBuild({ body }, { caller }) {
      const { template, build, tags } = await request(caller, body);
      const aliases = await store.templates.aliases(template.id);
      return {
        templateID: template.id,
        buildID: build.id,
        public: template.public,
        aliases: aliases.map(({ alias }) => alias),
        names: aliases.map(qualified),
        tags: [...tags],
      };
    },

    async requestBuildV2({ body }, { caller }) {
      const { template, build } = await request(caller, body);
      return { templateID: template.id, buildID: build.id };
    },

    async buildFiles({ params: { templateID, hash } }, { caller, origin }) {
      const template = await ownTemplate(deps.names, caller, templateID);
      const present = await deps.archives.touch(template.id, hash);
      // Also when the files are there: clients may ask to upload them again.
      const place = { templateId: template.id, hash };
      // Without a public URL: the URL that the request came to.
      return { present, url: uploadUrl(config.publicUrl ?? origin, place, { seed: seeds.current, now: now() }) };
    },
  };
}

function limitsOf({ limits }: Project, config: OrchestratorConfig): TemplateLimits {
  return {
    cpuCount: limits.sandboxCPU ?? config.maxTemplateCpu,
    memoryMb: limits.sandboxMemoryMB ?? config.maxTemplateMemoryMb,
    diskMb: limits.sandboxDiskMB ?? config.maxTemplateDiskMb,
    contact: config.supportContact,
  };
}

function defaultSizes(config: OrchestratorConfig): TemplateSizes {
  return {
    cpuCount: config.baseCpuCount,
    memoryMB: config.baseMemoryMb,
    diskMb: config.baseDiskMb,
    freeDiskMb: config.templateDiskMb,
  };
}
