/** Finds the project that an operator's route names. */

import { AppError } from "../../shared/http/errors.ts";
import { isUuid } from "../../shared/ids.ts";
import type { ProjectStore } from "../store/projects/projects.ts";
import type { Project } from "../store/projects/record.ts";

/** @throws {AppError} bad_request for text that is no id; not_found */
export async function findProject(
  projects: Pick<ProjectStore, "find">,
  reference: string,
  field: string,
): Promise<Project> {
  checkReference(reference, field);
  const found = await projects.find(reference);
  if (found === undefined) throw new AppError("not_found", `project '${reference}' not found`);
  return found;
}

/** The same, but a project that is being deleted is not usable: 409. */
export async function findLivingProject(
  projects: Pick<ProjectStore, "find">,
  reference: string,
  field: string,
): Promise<Project> {
  const found = await findProject(projects, reference, field);
  if (found.status === "deleting") throw new AppError("conflict", `project '${reference}' is being deleted`);
  return found;
}

export function checkReference(reference: string, field: string): void {
  if (isUuid(reference) || /^prj_/i.test(reference)) return;
  throw new AppError("bad_request", `${field} must be a UUID or a prj_ id`);
}
