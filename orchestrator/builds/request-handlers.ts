/** Handlers that create a build: its template, and the upload URLs for the files of its COPY steps. */

import type { buildApi } from "../../shared/api/builds.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { ENVD_VERSION } from "../../shared/version.ts";
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
  readonly store: Store;
  readonly names: TemplateNames;
  readonly archives: Archives;
  readonly limits: (project: Project) => TemplateLimits;
  readonly defaults: TemplateSizes;
  readonly seed: string;
  readonly now: () => number;
  /** The public URL of this API; undefined: the URL that the request came to. */
  readonly publicUrl: string | undefined;
}

type BuildRequestHandlers = Pick<Handlers<typeof buildApi, Project>, "requestBuild" | "requestBuildV2" | "buildFiles">;

export function createBuildRequestHandlers(deps: BuildRequestsDeps): BuildRequestHandlers {
  const { store } = deps;

  async function request(caller: Project, body: TemplateAsk & { readonly teamID?: string }) {
    ownTeam(caller, body.teamID, "body");
    const asked = readTemplateRequest(body, {
      slug: caller.slug,
      limits: deps.limits(caller),
      defaults: deps.defaults,
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
      return { present, url: uploadUrl(deps.publicUrl ?? origin, place, { seed: deps.seed, now: deps.now() }) };
    },
  };
}
