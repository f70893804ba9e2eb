/** The API description as a web page, made from the OpenAPI document, without scripts or external resources. Pure. */

import { createHash } from "node:crypto";
import type { OpenApi, Operation, Parameter } from "../../../shared/http/openapi.ts";
import { answerOf, curlOf } from "./examples.ts";

export interface DocsPage {
  readonly html: string;
  readonly contentSecurityPolicy: string;
}

export function docsPage(document: OpenApi): DocsPage {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const tags = [...new Set(operations.flatMap(({ operation }) => operation.tags))];
  const sections = tags.map((tag) => {
    const mine = operations.filter(({ operation }) => operation.tags.includes(tag));
    return `<section id="${slug(tag)}"><h2>${escape(tag)}</h2>${mine.map(entry).join("")}</section>`;
  });
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escape(document.info.title)}</title><style>${STYLE}</style></head>
<body><a class="skip" href="#main">Skip to content</a>
<nav aria-label="Sections"><strong>${escape(document.info.title)}</strong><small>version ${escape(document.info.version)}</small>
${tags.map((tag) => `<a href="#${slug(tag)}">${escape(tag)}</a>`).join("\n")}
<a href="/openapi.json">openapi.json</a></nav>
<main id="main"><h1>${escape(document.info.title)}</h1>
<p>${escape(document.info.description)} Send your key in the <code>X-API-Key</code> header. Set
<code>E2B_API_URL</code> and the key with <code>. .svc/env</code> to run the examples; names in <code>\${…}</code> are yours to set. Errors are
<code>{"code": 404, "message": "…", "error_code": "…"}</code>, with <code>code</code> equal to the HTTP status.</p>
${sections.join("\n")}</main></body></html>
`;
  return { html, contentSecurityPolicy: POLICY };
}

/** The page at the API's bare address. Its links are relative, because a proxy may put a path in front. */
export function rootPage({ info }: OpenApi): DocsPage {
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escape(info.title)}</title><style>${STYLE}</style></head>
<body class="single"><main><h1>${escape(info.title)}</h1><p>${escape(info.description)}</p>
<p><a href="docs">Reference with examples</a> · <a href="openapi.json">OpenAPI description</a></p></main></body></html>
`;
  return { html, contentSecurityPolicy: POLICY };
}

function entry({ path, method, operation }: { path: string; method: string; operation: Operation }): string {
  const flags = operation.deprecated === true ? ' <span class="flag">deprecated</span>' : "";
  const body = operation.requestBody;
  // The element is open, so that a browser's search finds its content.
  return `<details open id="${escape(operation.operationId)}"><summary><span class="method ${method.toLowerCase()}">${method}</span>
<code>${escape(path)}</code> <span class="what">${escape(operation.summary)}</span>${flags}</summary>
${operation.description === undefined ? "" : `<p>${escape(operation.description)}</p>`}
${authLine(operation)}
${operation.parameters.length === 0 ? "" : `<h3>Parameters</h3>${fields(operation.parameters.map(parameterField))}`}
${body === undefined ? "" : `<h3>Body${body.required ? "" : " (optional)"}</h3>${bodyFields(Object.values(body.content)[0]?.schema)}`}
<h3>Answers</h3>${answers(operation)}
<h3>Example</h3><pre><code>${escape(curlOf(method, path, operation))}</code></pre>${exampleAnswer(operation)}</details>`;
}

function exampleAnswer(operation: Operation): string {
  const answer = answerOf(operation);
  return answer === undefined ? "" : `<pre><code>${escape(JSON.stringify(answer, null, 2))}</code></pre>`;
}

function authLine({ security }: Operation): string {
  if (security.length === 0) return "<p>No authentication.</p>";
  const schemes = security.map((scheme) =>
    Object.keys(scheme)
      .map((name) => AUTH[name] ?? name)
      .join(" with "),
  );
  return `<p>Authentication: ${schemes.map(escape).join(", or ")}.</p>`;
}

const AUTH: Readonly<Record<string, string>> = {
  apiKey: "X-API-Key",
  bearer: "Authorization: Bearer",
  admin: "X-Admin-Token",
  team: "X-Team-ID",
  volume: "Authorization: Bearer with the volume's token",
};

interface Field {
  readonly name: string;
  readonly required: boolean;
  readonly schema: Schema;
}

interface Schema {
  readonly type?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly description?: string;
  readonly default?: unknown;
  readonly [limit: string]: unknown;
}

function parameterField({ name, required, schema }: Parameter): Field {
  return { name, required, schema: schema as Schema };
}

function bodyFields(given: unknown): string {
  const schema = given as Schema;
  if (schema.properties === undefined) return `<p>${escape(typeName(schema))}</p>`;
  return fields(listed(schema, ""));
}

/** Fields of an object, those of nested objects under dotted names. */
function listed(schema: Schema, prefix: string): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const field = { name: `${prefix}${name}`, required: schema.required?.includes(name) ?? false, schema: property };
    return [field, ...listed(property, `${prefix}${name}.`)];
  });
}

function fields(list: readonly Field[]): string {
  const rows = list.map(({ name, required, schema }) => {
    const need = required
      ? "required"
      : schema.default === undefined
        ? ""
        : `default ${JSON.stringify(schema.default)}`;
    const facts = [typeName(schema), limits(schema), need].filter((fact) => fact !== "").join(" · ");
    const about = schema.description === undefined ? "" : `<td>${escape(schema.description)}</td>`;
    return `<tr><th scope="row"><code>${escape(name)}</code></th><td>${escape(facts)}</td>${about}</tr>`;
  });
  return `<table><tbody>${rows.join("")}</tbody></table>`;
}

function typeName(schema: Schema): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeName).join(" | ");
  if (schema.items !== undefined) return `${typeName(schema.items)}[]`;
  if (typeof schema.additionalProperties === "object") return `map of ${typeName(schema.additionalProperties)}`;
  return typeof schema.type === "string" ? schema.type : "any";
}

const LIMITS = [
  "minimum",
  "maximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "maxProperties",
  "pattern",
  "format",
];

function limits(schema: Schema): string {
  return LIMITS.flatMap((name) => {
    const value = schema[name];
    return typeof value === "number" || typeof value === "string" ? [`${name} ${value}`] : [];
  }).join(", ");
}

function answers({ responses }: Operation): string {
  const rows = Object.entries(responses).map(
    ([status, { description }]) =>
      `<tr><th scope="row"><code>${escape(status)}</code></th><td>${escape(description)}</td></tr>`,
  );
  return `<table><tbody>${rows.join("")}</tbody></table>`;
}

function slug(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

const STYLE = `
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--blue:#2563eb}
*{box-sizing:border-box}body{margin:0;display:grid;grid-template-columns:15rem 1fr;font:16px/1.55 system-ui,sans-serif}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1.5rem 1rem;border-right:1px solid var(--line);display:flex;flex-direction:column;gap:.4rem}
nav small{opacity:.7;margin-bottom:1rem}nav a{color:inherit;text-decoration:none}nav a:hover,nav a:focus{text-decoration:underline}
main{padding:1.5rem 2.5rem 6rem;max-width:70rem;min-width:0}h1{margin-top:0}h2{margin:2.5rem 0 .75rem}h3{font-size:1rem;margin:1rem 0 .25rem}
details{border:1px solid var(--line);border-radius:.5rem;margin:.5rem 0;padding:.5rem .75rem}summary{cursor:pointer}details[open] summary{margin-bottom:.5rem}
pre{margin:.5rem 0;padding:.75rem;background:var(--soft);border-radius:.5rem;overflow:auto;white-space:pre-wrap}.single{display:block}code{font:.9em ui-monospace,monospace;overflow-wrap:anywhere}.method{display:inline-block;width:4.2rem;font:700 .8em ui-monospace,monospace;color:var(--blue)}
.delete{color:#dc2626}.post{color:#16a34a}.put,.patch{color:#d97706}.what{opacity:.8}.flag{font-size:.8em;border:1px solid var(--line);border-radius:1rem;padding:0 .5rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .75rem .3rem 0;border-top:1px solid var(--soft)}th{font-weight:400;white-space:nowrap}
.skip{position:absolute;left:-999px}.skip:focus{left:1rem;top:1rem}
@media(max-width:48rem){body{display:block}nav{position:static;height:auto;border:0}main{padding:1rem}th{white-space:normal}}
`;

/** The page's content security policy: its own style and nothing else. */
const POLICY = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; frame-ancestors 'none'`;
