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
  return KNOWN.get(name) ?? makeWithCli(name);
}

function makeWithCli(name: string): string {
  return `'npx @e2b/cli template create ${name}' makes one from a Dockerfile`;
}

const CODE_INTERPRETER =
  "'./scripts/template code-interpreter-v1' makes the code interpreter's template: its operator runs it where the platform runs";

/** What to do about the names that the public SDKs use by default, or that the first examples of their documentation use. */
const KNOWN: ReadonlyMap<string, string> = new Map([
  ["code-interpreter-v1", CODE_INTERPRETER],
  ["code-interpreter", `this platform calls it 'code-interpreter-v1': ${CODE_INTERPRETER}`],
  ["desktop", `'desktop' is not part of this platform: ${makeWithCli("desktop")}`],
  [
    "mcp-gateway",
    "the option 'mcp' needs it, and this platform has no MCP gateway: the servers of the MCP catalogue are Docker images, which cannot " +
      "run in a sandbox. Start an MCP server with a command in the sandbox, and reach it with getHost",
  ],
]);
