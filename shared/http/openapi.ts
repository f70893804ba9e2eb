/**
 * Makes an OpenAPI 3.1 document from contracts. TypeBox schemas are JSON Schema already, so nothing is converted. Lists for
 * each route only answers that it gives: a route without a success is one that does not work. Pure.
 */

import type { TSchema } from "typebox";
import { defined } from "../defined.ts";
import { VERSION } from "../version.ts";
import type { Access, Contract, Route } from "./contract.ts";
import { bodySchema, OTHER_NAMES } from "./fields/closed.ts";
import { JOINED_BY } from "./fields/url-values.ts";
import { type Scope, scopeOf } from "./scopes.ts";
import { MESSAGES } from "./validate.ts";

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly description?: string;
  readonly deprecated?: boolean;
  /** The scope that an API key needs. */
  readonly "x-scope"?: Scope;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly required: boolean;
  readonly schema: unknown;
}

type Content = Readonly<Record<string, { readonly schema: unknown }>>;

const BYTES = { type: "string", format: "binary" };

export interface OpenApi {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: unknown;
}

const errorSchema = {
  type: "object",
  required: ["code", "message"],
  properties: {
    code: { type: "integer", description: "Equal to the HTTP status" },
    message: { type: "string" },
    error_code: { type: "string", description: "Open set" },
  },
};

/** Of the content of volumes, as SDKs read it. */
const contentErrorSchema = {
  ...errorSchema,
  properties: { ...errorSchema.properties, code: { type: "string", description: "The HTTP status as text" } },
};

const descriptions: Readonly<Record<number, string>> = {
  200: "Success",
  201: "Created",
  202: "Accepted",
  204: "Success, no body",
  400: "Bad request: the message names the field",
  401: "Missing, malformed or unknown credentials",
  403: "Forbidden: another project's, beyond the project's limits, or beyond the key's scopes; the message has the reason",
  404: "Not found, or not the caller's",
  408: "The body came too slowly",
  409: "Conflict with the present state",
  410: "Removed",
  413: "The body is too long",
  429: "Too many requests; Retry-After in whole seconds",
  500: "Internal error",
  501: "Not implemented by this version",
  503: "Service busy or no capacity",
  504: "Timed out",
  507: "No disk space, or a quota is used up",
};

const security: Readonly<Record<Access, Operation["security"]>> = {
  none: [],
  project: [{ apiKey: [] }, { bearer: [], team: [] }, { admin: [], team: [] }],
  team: [
    { bearer: [], team: [] },
    { admin: [], team: [] },
  ],
  bearer: [{ bearer: [] }],
  admin: [{ admin: [] }],
  node: [{ bearer: [] }],
  volume: [{ volume: [] }],
};

export function toOpenApi(contract: Contract): OpenApi {
  const paths: Record<string, Record<string, Operation>> = {};
  for (const [name, route] of Object.entries(contract)) {
    const methods = (paths[route.path] ??= {});
    methods[route.method.toLowerCase()] = operation(name, route);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Sandbox platform API",
      version: VERSION,
      description:
        "Sandboxes for AI agents. An object of a request body has the fields that are described here; where it may have others (`additionalProperties: true`) these are ignored, unless one is a known field in another spelling or place. Null for an optional field means absent. `x-scope` is the scope that an API key needs; for `read`, the scope that changes the same kind of object serves too.",
    },
    paths,
    components: {
      schemas: { Error: errorSchema, ContentError: contentErrorSchema },
      securitySchemes: {
        apiKey: { type: "apiKey", in: "header", name: "X-API-Key" },
        bearer: { type: "http", scheme: "bearer" },
        admin: { type: "apiKey", in: "header", name: "X-Admin-Token" },
        team: { type: "apiKey", in: "header", name: "X-Team-ID" },
        volume: { type: "http", scheme: "bearer", description: "The token of the volume" },
      },
    },
  };
}

function operation(name: string, route: Route): Operation {
  const scope = scopeOf(route);
  const isServed = route.removed !== true;
  const success = isServed ? [route.status, ...(route.alsoStatus ?? [])] : [];
  const errors = new Set([...commonErrors(route), ...(route.errors ?? [])]);
  return {
    operationId: name,
    summary: route.summary,
    tags: [route.tag],
    ...(route.deprecated === true ? { deprecated: true } : {}),
    security: security[route.access],
    ...defined({ "x-scope": scope }),
    parameters: [...parameters("path", route.params), ...parameters("query", route.query)],
    ...requestBody(route),
    responses: Object.fromEntries([
      ...success.map((status) => [status, succeeded(status, route)] as const),
      ...[...errors].sort((a, b) => a - b).map((status) => [status, failure(status, route)] as const),
    ]),
  };
}

function requestBody(route: Route): Pick<Operation, "requestBody"> {
  const { bytes, optionalBody } = route;
  const body = route.body === undefined ? undefined : bodySchema(route);
  if (bytes !== undefined) return { requestBody: { required: true, content: { [bytes]: { schema: BYTES } } } };
  if (body === undefined) return {};
  return { requestBody: { required: optionalBody !== true, content: json(clean(body)) } };
}

/** What a route may answer before its handler runs; a route that is only announced answers nothing else but 501. */
function commonErrors({ access, params, query, body }: Route): number[] {
  const namesProject = access === "project" || access === "team";
  const hasInput = [params, query, body].some((schema) => schema !== undefined);
  return [
    ...(namesProject || hasInput ? [400] : []),
    ...(access === "none" ? [] : [401, 429]),
    ...(namesProject ? [403] : []),
    500,
  ];
}

function succeeded(status: number, route: Route) {
  const description = descriptions[status] ?? "Success";
  const { reply, stream } = route;
  if (reply === undefined && stream === undefined) return { description };
  const text = reply === undefined ? BYTES : { type: "string" };
  return {
    description,
    content: {
      ...(reply === undefined ? {} : json(clean(reply))),
      ...(stream === undefined ? {} : { [stream]: { schema: text } }),
    },
  };
}

function failure(status: number, { access }: Route) {
  const $ref = `#/components/schemas/${access === "volume" ? "ContentError" : "Error"}`;
  return { description: descriptions[status] ?? "Error", content: json({ $ref }) };
}

function json(schema: unknown): Content {
  return { "application/json": { schema } };
}

function parameters(where: "path" | "query", schema: TSchema | undefined): Parameter[] {
  if (schema === undefined || !("properties" in schema)) return [];
  const required = "required" in schema ? (schema.required as readonly string[]) : [];
  return Object.entries(schema.properties as Readonly<Record<string, unknown>>).map(([name, property]) => ({
    name,
    in: where,
    required: where === "path" || required.includes(name),
    schema: clean(property),
  }));
}

/** Removes keywords that only this platform uses. */
function clean(schema: unknown): unknown {
  const text = JSON.stringify(schema, (key, value: unknown) =>
    [MESSAGES, OTHER_NAMES, JOINED_BY].includes(key) ? undefined : value,
  );
  return JSON.parse(text) as unknown;
}
