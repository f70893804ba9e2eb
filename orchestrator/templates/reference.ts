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
  const clean = text.trim().toLowerCase();
  const [path = "", tag = DEFAULT_TAG, ...more] = clean.split(":");
  const parts = path.split("/");
  if (more.length > 0 || parts.length > 2) throw invalid(text, "expected [namespace/]name[:tag]");
  const name = parts.at(-1) ?? "";
  const namespace = parts.length === 2 ? parts[0] : undefined;
  if (!isName(name)) throw invalid(text, "a name consists of a-z, 0-9, - and _");
  if (namespace !== undefined && !isName(namespace)) throw invalid(text, "a namespace consists of a-z, 0-9, - and _");
  if (!isTag(tag)) throw invalid(text, TAG_RULE);
  return { namespace, name, tag };
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

function invalid(text: string, reason: string): AppError {
  return new AppError("bad_request", `Invalid template reference '${text.slice(0, 128)}': ${reason}`);
}
