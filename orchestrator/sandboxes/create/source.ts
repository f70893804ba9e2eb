/** What a new sandbox starts from: the template and its build, the volumes that it mounts, its resources, and the node of these. */

import type { Origin } from "../../../shared/agent-api/routes.ts";
import type { CreateBody } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import type { Limits } from "../../access/limits.ts";
import type { Refusals } from "../../access/refusals.ts";
import { canBePooled } from "../../nodes/pools/pool-targets.ts";
import type { Build } from "../../store/builds/record.ts";
import type { Project } from "../../store/projects/record.ts";
import type { Template } from "../../store/templates/record.ts";
import type { TemplateNames } from "../../templates/names.ts";
import { type Mounts, mountsFrom, type ResolveMounts } from "../../volumes/mounts.ts";
import { readResources, type SandboxResources } from "../resources.ts";

export interface SourceDeps {
  readonly limits: Limits;
  readonly refusals: Refusals;
  readonly resolveMounts: ResolveMounts;
  readonly templates: TemplateNames;
}

export interface Source extends Mounts, SandboxResources {
  readonly template: Template;
  readonly build: Build;
  readonly alias: string | undefined;
  /** Undefined: it starts from the build's image. */
  readonly origin: Origin | undefined;
}

/** @throws {AppError} bad_request, forbidden, template_not_found */
export async function findSource(
  project: Project,
  body: CreateBody,
  { limits, refusals, resolveMounts, templates }: SourceDeps,
): Promise<Source> {
  const asked = await resolveMounts(project.id, body.volumeMounts ?? []);
  const found = await templates.resolve(project, body.templateID);
  const { memory, ...mounts } = mountsFrom(found.build, asked, body);
  const wanted = readResources(body, found.build, { ...limits.of(project), contact: refusals.contact });
  return { ...found, ...mounts, ...wanted, origin: originOf(found.build, memory) };
}

/** Whether a pool of the build helps sandboxes like this one. */
export function helpsPool({ build, origin, volumeMounts }: Source): boolean {
  return origin?.memory !== false && volumeMounts.length === 0 && canBePooled(build);
}

/** A sandbox of a snapshot, or of a template with memory, starts from the snapshot on its node; others from an image. */
function originOf({ kind, id, snapshotId, memory }: Build, wanted: boolean): Origin | undefined {
  const from = kind === "template" ? snapshotId : id;
  return from === undefined ? undefined : { is: "snapshot", snapshotId: from, memory: memory && wanted };
}
