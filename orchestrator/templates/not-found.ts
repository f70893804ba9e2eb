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

const madeBy = (starter: string, what: string) =>
  `'./scripts/template ${starter}' makes ${what}: its operator runs it where the platform runs`;
const CODE_INTERPRETER = madeBy("code-interpreter-v1", "the code interpreter's template");

/** The other templates that come with the platform (scripts/starters). */
const STARTERS = ["desktop", "browser", "claude", "codex", "opencode", "amp"];

/** What to do about the names that the public SDKs use by default, or that the first examples of their documentation use. */
const KNOWN: ReadonlyMap<string, string> = new Map([
  ["code-interpreter-v1", CODE_INTERPRETER],
  ["code-interpreter", `this platform calls it 'code-interpreter-v1': ${CODE_INTERPRETER}`],
  ...STARTERS.map((name) => [name, madeBy(name, "this template")] as const),
  [
    "mcp-gateway",
    "the option 'mcp' needs it, and this platform has no MCP gateway: the servers of the MCP catalogue are Docker images, which cannot " +
      "run in a sandbox. Start an MCP server with a command in the sandbox, and reach it with getHost",
  ],
]);
