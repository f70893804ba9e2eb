/** Parses `[namespace/]alias[:tag]` or `templateID[:tag]`. Pure. */

import { AppError } from "../../shared/http/errors.ts";
import { isUuid } from "../../shared/ids.ts";

export interface TemplateReference {
  readonly namespace: string | undefined;
  /** Alias or template id. */
  readonly name: string;
  readonly tag: string;
}

export const DEFAULT_TAG = "default";

/** Trims and lower-cases the text. @throws {AppError} bad_request, which names the wrong part */
export function parseTemplateReference(text: string): TemplateReference {
  const read = readReference(text);
  if (typeof read !== "string") return read;
  throw new AppError("bad_request", `Invalid template reference '${text.slice(0, 128)}': ${read}`);
}

/**
 * Undefined for text that no template can be called. Filters and the look-up of a name treat such text as the name of
 * nothing (docs/protocol.md, References).
 */
export function possibleTemplateReference(text: string): TemplateReference | undefined {
  const read = readReference(text);
  return typeof read === "string" ? undefined : read;
}

/** The reference, or the reason why the text is none. */
function readReference(text: string): TemplateReference | string {
  const clean = text.trim().toLowerCase();
  const [path = "", tag = DEFAULT_TAG, ...more] = clean.split(":");
  const parts = path.split("/");
  if (more.length > 0 || parts.length > 2) return "expected [namespace/]name[:tag]";
  const name = parts.at(-1) ?? "";
  const namespace = parts.length === 2 ? parts[0] : undefined;
  if (!isName(name)) return "a name consists of a-z, 0-9, - and _";
  if (namespace !== undefined && !isName(namespace)) return "a namespace consists of a-z, 0-9, - and _";
  if (!isTag(tag)) return TAG_RULE;
  return { namespace, name, tag };
}

/**
 * Splits `name:buildID`, by which a build without a tag is named. `buildId` is undefined for every other text.
 */
export function splitBuild(text: string): { readonly name: string; readonly buildId: string | undefined } {
  const clean = text.trim();
  const at = clean.lastIndexOf(":");
  const buildId = clean.slice(at + 1).toLowerCase();
  return at > 0 && isUuid(buildId) ? { name: clean.slice(0, at), buildId } : { name: text, buildId: undefined };
}

/** Trims and lower-cases the text. @throws {AppError} bad_request */
export function parseTag(text: string): string {
  const tag = text.trim().toLowerCase();
  if (isTag(tag)) return tag;
  throw new AppError("bad_request", `Invalid tag '${text.slice(0, 128)}': ${TAG_RULE}`);
}

const TAG_RULE = "a tag consists of a-z, 0-9, -, _ and ., and is not a UUID";

function isTag(text: string): boolean {
  return /^[a-z0-9._-]{1,128}$/.test(text) && !isUuid(text);
}

function isName(text: string): boolean {
  return /^[a-z0-9_-]{1,128}$/.test(text);
}
