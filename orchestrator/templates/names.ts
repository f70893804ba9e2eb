/** Resolves a reference, such as `name:tag`, to the template and build that it means for a project. */

import { AppError } from "../../shared/http/errors.ts";
import type { Build } from "../store/builds/record.ts";
import type { Project } from "../store/projects/record.ts";
import type { Template } from "../store/templates/record.ts";
import type { TemplateStore } from "../store/templates/templates.ts";
import { noTemplate } from "./not-found.ts";
import { DEFAULT_TAG, parseTemplateReference, type TemplateReference } from "./reference.ts";

interface Resolved {
  readonly template: Template;
  readonly build: Build;
  /** The first alias, without its namespace. */
  readonly alias: string | undefined;
}

export interface TemplateNames {
  /** @throws {AppError} template_not_found, also for another project's private template. */
  resolve(project: Project, reference: string): Promise<Resolved>;
  /** Undefined: the template is unknown, or another project's private one. */
  find(project: Project, reference: TemplateReference): Promise<Template | undefined>;
  /** Like `find`, but also returns another project's private template. */
  findAny(project: Project, reference: TemplateReference): Promise<Template | undefined>;
}

export function createTemplateNames(store: TemplateStore): TemplateNames {
  async function findAny(project: Project, { namespace, name }: TemplateReference): Promise<Template | undefined> {
    if (namespace !== undefined) return store.findByAlias(name, [namespace]);
    // A name of the project takes precedence over a promoted name, and a name over an id.
    return (await store.findByAlias(name, [project.slug, ""])) ?? (await store.get(name));
  }

  async function find(project: Project, reference: TemplateReference): Promise<Template | undefined> {
    const template = await findAny(project, reference);
    return template !== undefined && mayUse(project, template) ? template : undefined;
  }

  return {
    find,
    findAny,
    async resolve(project, text) {
      const reference = parseTemplateReference(text);
      const template = await find(project, reference);
      if (template === undefined) throw noTemplate(text);
      const build = await store.tagged(template.id, reference.tag);
      if (build === undefined) {
        throw reference.tag === DEFAULT_TAG
          ? new AppError("template_not_found", `template '${text}' has no build that is ready`)
          : new AppError(
              "template_not_found",
              `tag '${reference.tag}' does not exist for template '${reference.name}'`,
            );
      }
      const aliases = await store.aliases(template.id);
      return { template, build, alias: aliases[0]?.alias };
    },
  };
}

export function mayUse(project: Project, template: Template): boolean {
  return template.public || template.projectId === project.id;
}
