/**
 * Which fields a request may have. An object in a body has the fields of its schema and no other, unless the schema says
 * `additionalProperties: true`: so a new object of the contract is closed without a word about it. Pure.
 */

import { type TSchema, Type } from "typebox";
import type { Route } from "../contract.ts";

/** Other names under which callers send a field, with what they should send instead (`api/common.ts`, `otherNames`). */
export const OTHER_NAMES = "x-other-names";

/** The keywords of a JSON Schema that say which fields an object has. */
export interface FieldSchema {
  readonly type?: unknown;
  readonly const?: unknown;
  readonly description?: unknown;
  readonly anyOf?: readonly FieldSchema[];
  readonly items?: FieldSchema;
  readonly properties?: Readonly<Record<string, FieldSchema>>;
  readonly additionalProperties?: FieldSchema | boolean;
  readonly [OTHER_NAMES]?: Readonly<Record<string, string>>;
}

/** As far as a body is read by it. */
export interface BodySchema extends FieldSchema {
  readonly anyOf?: readonly BodySchema[];
  readonly items?: BodySchema;
  readonly properties?: Readonly<Record<string, BodySchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: BodySchema | boolean;
}

const NO_FIELDS = Type.Object({}, { additionalProperties: false });

/**
 * The schema of the bodies that a route accepts; undefined: the route checks no body. A route that takes none refuses
 * one with fields, because the caller expects an effect of them.
 */
export function bodySchema({ body, bytes, method, access, removed }: Route): TSchema | undefined {
  // Bodies between the platform's programs: their contracts close what must be closed.
  if (access === "node") return body;
  if (body !== undefined) return closed(body);
  return bytes !== undefined || method === "GET" || removed === true ? undefined : NO_FIELDS;
}

/** Whether the object has fields of its own that callers may not add to. */
export function isClosed({ properties, additionalProperties }: FieldSchema): boolean {
  return properties !== undefined && additionalProperties === false;
}

/** Whether the object has fields, and a caller may send others, which are ignored. */
export function isOpen({ properties = {}, additionalProperties }: FieldSchema): boolean {
  return Object.keys(properties).length > 0 && additionalProperties === true;
}

const copies = new WeakMap<TSchema, TSchema>();

/** A copy of the schema in which each object without the keyword has `additionalProperties: false`; always the same one. */
function closed(schema: TSchema): TSchema {
  const known = copies.get(schema);
  if (known !== undefined) return known;
  const copy: TSchema = closedAt(schema);
  copies.set(schema, copy);
  return copy;
}

function closedAt(schema: FieldSchema): FieldSchema {
  const { anyOf, items, properties, additionalProperties } = schema;
  return {
    ...schema,
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map(closedAt) }),
    ...(items === undefined ? {} : { items: closedAt(items) }),
    ...(typeof additionalProperties === "object" ? { additionalProperties: closedAt(additionalProperties) } : {}),
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, closedAt(each)])),
          additionalProperties: additionalProperties ?? false,
        }),
  };
}
