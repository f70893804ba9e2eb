/** Handlers that assign, delete and list the tags of a template. */

import type { tagApi } from "../../shared/api/templates.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { iso } from "../forms/time.ts";
import type { Project } from "../store/projects/record.ts";
import type { Store } from "../store/store.ts";
import type { Template } from "../store/templates/record.ts";
import type { TemplateNames } from "./names.ts";
import { noTemplate } from "./not-found.ts";
import { ownTemplate } from "./ownership.ts";
import { DEFAULT_TAG, parseTag, parseTemplateReference } from "./reference.ts";
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

  return {
    async assignTags({ body }, { caller }) {
      const tags = [...new Set(body.tags.map(parseTag))];
      const { tag, name } = parseTemplateReference(body.target);
      const template = await written(caller, body.target, "target");
      const build = await store.templates.tagged(template.id, tag);
      if (build === undefined) {
        throw new AppError("template_not_found", `tag '${tag}' does not exist for template '${name}'`);
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
