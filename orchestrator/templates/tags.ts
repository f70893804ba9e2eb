/** Handlers that assign, delete and list the tags of a template. */

import type { tagApi } from "../../shared/api/templates.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { iso } from "../forms/time.ts";
import type { Build } from "../store/builds/record.ts";
import type { Project } from "../store/projects/record.ts";
import type { Store } from "../store/store.ts";
import type { Template } from "../store/templates/record.ts";
import type { TemplateNames } from "./names.ts";
import { noTemplate } from "./not-found.ts";
import { ownTemplate } from "./ownership.ts";
import { DEFAULT_TAG, parseTag, parseTemplateReference, splitBuild } from "./reference.ts";
import { ownNamespace } from "./request.ts";

export interface TagsDeps {
  readonly store: Store;
  readonly names: TemplateNames;
}

export function createTagHandlers({ store, names }: TagsDeps): Handlers<typeof tagApi, Project> {
  async function written(caller: Project, text: string, field: string): Promise<Template> {
    ownNamespace(parseTemplateReference(text), caller.slug, field);
    return ownTemplate(names, caller, text);
  }

  async function readyBuild(template: Template, id: string): Promise<Build | undefined> {
    const build = await store.templates.build(id);
    return build?.templateId === template.id && build.status === "ready" ? build : undefined;
  }

  return {
    async assignTags({ body }, { caller }) {
      const tags = [...new Set(body.tags.map(parseTag))];
      const target = splitBuild(body.target);
      const { tag, name } = parseTemplateReference(target.name);
      const template = await written(caller, target.name, "target");
      const build =
        target.buildId === undefined
          ? await store.templates.tagged(template.id, tag)
          : await readyBuild(template, target.buildId);
      if (build === undefined) {
        const what = target.buildId === undefined ? `tag '${tag}'` : `a ready build '${target.buildId}'`;
        throw new AppError("template_not_found", `${what} does not exist for template '${name}'`);
      }
      await store.tags.assign(template.id, build.id, tags);
      return { tags, buildID: build.id };
    },

    async deleteTags({ body }, { caller }) {
      const tags = [...new Set(body.tags.map(parseTag))];
      if (body.name.includes(":")) throw new AppError("bad_request", "body field 'name' must not have a tag");
      const template = await written(caller, body.name, "name");
      if (tags.includes(DEFAULT_TAG)) {
        throw new AppError("bad_request", `tag '${DEFAULT_TAG}' cannot be removed from a template`);
      }
      const missing = await store.tags.remove(template.id, tags);
      if (missing !== undefined) {
        throw new AppError("template_not_found", `tag '${missing}' does not exist for template '${body.name}'`);
      }
    },

    async listTags({ params }, { caller }) {
      const template = await names.find(caller, parseTemplateReference(params.templateID));
      if (template === undefined) throw noTemplate(params.templateID);
      const tags = await store.tags.list(template.id);
      return tags.map(({ tag, buildId, createdAt }) => ({ tag, buildID: buildId, createdAt: iso(createdAt) }));
    },
  };
}
