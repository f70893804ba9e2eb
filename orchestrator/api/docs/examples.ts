/** An example request and an example answer for each operation, made from the schemas of the API description. Pure. */

import type { Operation } from "../../../shared/http/openapi.ts";

/** The keywords of a JSON Schema that the examples are made from. */
interface ExampleSchema {
  readonly type?: unknown;
  readonly format?: unknown;
  readonly pattern?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly minimum?: unknown;
  /** The schema's own examples; the first one is used before any other keyword. */
  readonly examples?: readonly unknown[];
  readonly anyOf?: readonly ExampleSchema[];
  readonly items?: ExampleSchema;
  readonly properties?: Readonly<Record<string, ExampleSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: ExampleSchema | boolean;
}

/** `request`: required fields, and fields with an example of their own. `answer`: all fields. */
type Extent = "request" | "answer";

/** A curl command for a shell that has read `.svc/env`; path parameters are shell variables. */
export function curlOf(method: string, path: string, operation: Operation): string {
  const body = operation.requestBody;
  const [type, content] = Object.entries(body?.content ?? {})[0] ?? [];
  const lines = [
    `curl${method === "GET" ? "" : ` -X ${method}`} "$E2B_API_URL${path.replaceAll(/\{(\w+)\}/g, "${$1}")}${queryOf(operation)}"`,
    ...credentials(operation).map((header) => `-H "${header}"`),
    ...(type === undefined ? [] : [`-H "Content-Type: ${type}"`, dataOf(type, content?.schema as ExampleSchema)]),
  ];
  return lines.join(" \\\n  ");
}

function dataOf(type: string, schema: ExampleSchema): string {
  return type === "application/json"
    ? `-d ${quoted(JSON.stringify(exampleOf(schema, "request")))}`
    : "--data-binary @file";
}

/** An example of the first successful answer that has a body; undefined when none has. */
export function answerOf({ responses }: Operation): unknown {
  for (const [status, { content }] of Object.entries(responses)) {
    const schema = content?.["application/json"]?.schema;
    if (Number(status) < 300 && schema !== undefined) return exampleOf(schema as ExampleSchema, "answer");
  }
  return undefined;
}

export function exampleOf(schema: ExampleSchema, extent: Extent, name = "value"): unknown {
  const [given] = [...(schema.examples ?? []), schema.const, schema.default, schema.enum?.[0]].filter(
    (value) => value !== undefined,
  );
  if (given !== undefined) return given;
  if (schema.anyOf !== undefined) {
    const [first = {}] = schema.anyOf;
    return exampleOf(schema.anyOf.find(({ type }) => type !== "null") ?? first, extent, name);
  }
  if (schema.items !== undefined) return [exampleOf(schema.items, extent, name.replace(/(?<=s)es$|s$/, ""))];
  if (schema.properties !== undefined) return objectOf(schema, extent);
  if (typeof schema.additionalProperties === "object")
    return { name: exampleOf(schema.additionalProperties, extent, "value") };
  return plain(schema, name);
}

function plain(schema: ExampleSchema, name: string): unknown {
  switch (schema.type) {
    case "string":
      return textOf(schema, name);
    case "integer":
    case "number":
      return Math.max(1, Number(schema.minimum ?? 1));
    case "boolean":
      return true;
    default:
      return schema.type === "null" ? null : {};
  }
}

function objectOf({ properties = {}, required = [] }: ExampleSchema, extent: Extent): unknown {
  const shown = Object.entries(properties).filter(
    ([key, property]) => extent === "answer" || required.includes(key) || property.examples !== undefined,
  );
  return Object.fromEntries(shown.map(([key, property]) => [key, exampleOf(property, extent, key)]));
}

const FORMATS: Readonly<Record<string, string>> = {
  "date-time": "2026-01-31T12:00:00.000Z",
  uuid: "3f0c1a52-6d7b-4c1e-9a55-0b8f2d1c7e90",
};

/** An example text: the field's name in words, in a form that the pattern allows. */
function textOf({ format, pattern }: ExampleSchema, name: string): string {
  if (typeof format === "string" && FORMATS[format] !== undefined) return FORMATS[format];
  const words = name.replaceAll(/([a-z0-9])([A-Z])/g, "$1-$2").toLowerCase();
  if (typeof pattern !== "string") return words;
  const allowed = new RegExp(pattern, "u");
  return [words, words.replaceAll("-", ""), `https://example.com/${words}`].find((text) => allowed.test(text)) ?? words;
}

function queryOf({ parameters }: Operation): string {
  const given = parameters.filter(({ in: where, required }) => where === "query" && required);
  if (given.length === 0) return "";
  const pairs = given.map(({ name, schema }) => {
    const value = exampleOf(schema as ExampleSchema, "request", name);
    return `${name}=${encodeURIComponent(typeof value === "string" ? value : JSON.stringify(value))}`;
  });
  return `?${pairs.join("&")}`;
}

const HEADERS: Readonly<Record<string, string>> = {
  apiKey: "X-API-Key: $E2B_API_KEY",
  admin: "X-Admin-Token: $SVC_ADMIN_TOKEN",
  bearer: "Authorization: Bearer $TOKEN",
  team: "X-Team-ID: $TEAM_ID",
  volume: "Authorization: Bearer $VOLUME_TOKEN",
};

/** The authentication scheme that most callers have. */
function credentials({ security }: Operation): string[] {
  const scheme =
    security.find((each) => "apiKey" in each) ?? security.find((each) => "admin" in each) ?? security[0] ?? {};
  return Object.keys(scheme).flatMap((name) => HEADERS[name] ?? []);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
