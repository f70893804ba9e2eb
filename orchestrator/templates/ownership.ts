/** Finds a project's templates and their builds, for the handlers that change them. Hides those of other projects. */

import { AppError } from "../../shared/http/errors.ts";
import type { Build } from "../store/builds/record.ts";
import type { Project } from "../store/projects/record.ts";
import type { Template } from "../store/templates/record.ts";
import type { TemplateStore } from "../store/templates/templates.ts";
import type { TemplateNames } from "./names.ts";
import { noTemplate } from "./not-found.ts";
import { parseTemplateReference } from "./reference.ts";

/** @throws {AppError} template_not_found, also for another project's templates and for snapshots. */
export async function ownTemplate(names: TemplateNames, project: Project, text: string): Promise<Template> {
  const template = await names.find(project, parseTemplateReference(text));
  if (template?.projectId !== project.id || template.kind !== "template") throw noTemplate(text);
  return template;
}

/** A build of a template of the project. @throws {AppError} template_not_found when the project has no such one */
export async function ownBuild(
  deps: { readonly names: TemplateNames; readonly templates: Pick<TemplateStore, "build"> },
  project: Project,
  params: { readonly templateID: string; readonly buildID: string },
): Promise<{ readonly template: Template; readonly build: Build }> {
  const template = await ownTemplate(deps.names, project, params.templateID);
  const build = await deps.templates.build(params.buildID.toLowerCase());
  if (build?.templateId !== template.id) {
    throw new AppError("template_not_found", `build '${params.buildID}' not found`);
  }
  return { template, build };
}
