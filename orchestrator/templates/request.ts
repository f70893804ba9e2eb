/** Reads the body of POST /v3/templates: template, tags and size. Errors have the wire contract's texts. Pure. */

import { AppError } from "../../shared/http/errors.ts";
import { DEFAULT_TAG, parseTag, parseTemplateReference, type TemplateReference } from "./reference.ts";

export interface TemplateAsk {
  readonly name?: string;
  /** Deprecated synonym of `name`; `name` wins. */
  readonly alias?: string;
  readonly tags?: readonly string[];
  readonly cpuCount?: number;
  readonly memoryMB?: number;
  readonly minFreeDiskMb?: number;
}

export interface TemplateSizes {
  readonly cpuCount: number;
  readonly memoryMB: number;
  /** Size of the base; no template is smaller. */
  readonly diskMb: number;
  /** Free disk after a build that asks for none. */
  readonly freeDiskMb: number;
}

export interface TemplateLimits {
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskMb: number;
  /** Whom to ask for more. */
  readonly contact: string;
}

export interface TemplateRequest {
  readonly name: string;
  /** Never empty. */
  readonly tags: readonly string[];
  readonly resources: { readonly cpuCount: number; readonly memoryMB: number; readonly diskSizeMB: number };
}

/** `slug`: the project's namespace, the only one that the project may write to. @throws {AppError} bad_request, forbidden */
export function readTemplateRequest(
  body: TemplateAsk,
  project: { readonly slug: string; readonly limits: TemplateLimits; readonly defaults: TemplateSizes },
): TemplateRequest {
  const text = body.name ?? body.alias;
  if (text === undefined || text.trim() === "") throw new AppError("bad_request", "Name is required");
  const reference = parseTemplateReference(text);
  ownNamespace(reference, project.slug, "name");
  const named = text.includes(":") ? [reference.tag] : [];
  const tags = [...new Set([...named, ...(body.tags ?? []).map(parseTag)])];
  return {
    name: reference.name,
    tags: tags.length === 0 ? [DEFAULT_TAG] : tags,
    resources: resources(body, project.limits, project.defaults),
  };
}

/** A write must name the caller's own namespace, or none. */
export function ownNamespace({ namespace }: TemplateReference, slug: string, field: string): void {
  if (namespace === undefined || namespace === slug) return;
  throw new AppError("bad_request", `body field '${field}': namespace '${namespace}' is not '${slug}'`);
}

function resources(body: TemplateAsk, limits: TemplateLimits, defaults: TemplateSizes) {
  const { cpuCount = Math.min(defaults.cpuCount, limits.cpuCount) } = body;
  const { memoryMB = Math.min(defaults.memoryMB, limits.memoryMb) } = body;
  const { minFreeDiskMb = Math.min(defaults.freeDiskMb, limits.diskMb) } = body;
  const beyond = (limit: string, requested: number) =>
    refusal(`${limit}: the limit of this project; ${requested} was requested; ask ${limits.contact} for more`);
  if (cpuCount > limits.cpuCount) throw beyond(`CPU count must be at most ${limits.cpuCount}`, cpuCount);
  if (memoryMB > limits.memoryMb) throw beyond(`Memory can't be higher than ${limits.memoryMb} MiB`, memoryMB);
  if (minFreeDiskMb > limits.diskMb) throw beyond(`Free disk can't be higher than ${limits.diskMb} MiB`, minFreeDiskMb);
  // The limit of a container's disk counts what the sandbox writes, so it is the free space after the build.
  return { cpuCount, memoryMB, diskSizeMB: Math.max(minFreeDiskMb, defaults.diskMb) };
}

/** A size that is legal, but more than the project's plan has: 403, not 400 (docs/protocol.md, Template builds). */
function refusal(message: string): AppError {
  return new AppError("forbidden", message);
}
