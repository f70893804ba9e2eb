/** Makes the error for an unknown template, which explains how to list templates and how to make one. Pure. */

import { AppError } from "../../shared/http/errors.ts";
import { possibleTemplateReference } from "./reference.ts";

/** The error has the same text for another project's template, so that it does not reveal which templates exist. */
export function noTemplate(reference: string): AppError {
  const message = `template '${reference}' not found: list templates with 'npx @e2b/cli template list' or GET /templates`;
  const make = creation(reference);
  return new AppError("template_not_found", make === undefined ? message : `${message}; ${make}`);
}

/** How to make the template; undefined when the reference names another namespace, or no template can have the name. */
function creation(text: string): string | undefined {
  const reference = possibleTemplateReference(text);
  if (reference === undefined || reference.namespace !== undefined) return undefined;
  const { name } = reference;
  const command = `'npx @e2b/cli template create ${name}' makes one from a Dockerfile`;
  return STARTERS.has(name) ? `'${name}' is not part of this platform: ${command}` : command;
}

/** Names that the public SDKs use by default, or that the first examples of their documentation use. */
const STARTERS: ReadonlySet<string> = new Set(["code-interpreter-v1", "code-interpreter", "desktop"]);
