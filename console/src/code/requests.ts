/** A request as code without an SDK: a shell's command, and the call of a program. Pure. */

import type { ActRequest } from "../base/performed.ts";
import { jsonWord, pythonOf, readsEnvironment, typescriptOf, word } from "./literals.ts";

/** Routes of operators. */
const ADMIN = /^\/(nodes|admin)(\/|$)/;

export function curlOf({ method, path, body }: ActRequest): string {
  const header = ADMIN.test(path) ? `"X-Admin-Token: $SVC_ADMIN_TOKEN"` : `"X-API-Key: $SVC_API_KEY"`;
  const lines = [`curl -X ${method} -H ${header} "$SVC_API_URL"${word(path)}`];
  if (body !== undefined) lines.push(`-H 'Content-Type: application/json'`, `-d ${jsonWord(body)}`);
  return lines.join(" \\\n  ");
}

export function fetchOf({ method, path, body }: ActRequest): string {
  const { name, variable } = credentialsOf(path);
  const json = body === undefined ? "" : `, "Content-Type": "application/json"`;
  return [
    `const response = await fetch(process.env.SVC_API_URL + ${JSON.stringify(path)}, {`,
    `  method: ${JSON.stringify(method)},`,
    `  headers: { "${name}": process.env.${variable}!${json} },`,
    ...(body === undefined ? [] : [`  body: JSON.stringify(${typescriptOf(body)}),`]),
    "});",
    "if (!response.ok) throw new Error(await response.text());",
  ].join("\n");
}

export function httpxOf({ method, path, body }: ActRequest): string {
  const { name, variable } = credentialsOf(path);
  return [
    "import os",
    "",
    "import httpx",
    "",
    "response = httpx.request(",
    `    ${JSON.stringify(method)},`,
    `    os.environ["SVC_API_URL"] + ${pythonOf(path)},`,
    `    headers={"${name}": os.environ["${variable}"]},`,
    ...(body === undefined ? [] : [`    json=${pythonOf(body)},`]),
    ")",
    "response.raise_for_status()",
  ].join("\n");
}

/** A statement with the SDK, with what it imports. */
export function sdkTypescript(imported: string, ...statements: readonly string[]): string {
  return [`import { ${imported} } from "e2b";`, "", ...statements].join("\n");
}

export function sdkPython(imported: string, args: unknown, ...statements: readonly string[]): string {
  const imports = [...(readsEnvironment(args) ? ["import os", ""] : []), `from e2b import ${imported}`];
  return [...imports, "", ...statements].join("\n");
}

function credentialsOf(path: string) {
  return ADMIN.test(path)
    ? { name: "X-Admin-Token", variable: "SVC_ADMIN_TOKEN" }
    : { name: "X-API-Key", variable: "SVC_API_KEY" };
}
