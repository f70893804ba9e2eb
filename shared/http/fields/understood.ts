/** What the platform understood of a request body: without nulls that mean absent, and without ignored fields. Pure. */

import type { TSchema } from "typebox";
import { type BodySchema, isOpen } from "./closed.ts";

/**
 * A copy of `body` without the nulls of optional fields, at any depth, and without the unknown fields of open objects.
 * Leaves the nulls of required fields, of list items and of map entries: those are values, and a schema that does not
 * allow null refuses them.
 */
export function understood(schema: TSchema, body: unknown): unknown {
  return cleaned(schema, body);
}

function cleaned(schema: BodySchema, value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (schema.anyOf !== undefined) {
    const [only, ...others] = schema.anyOf.filter(({ type }) => type !== "null");
    // Of several shapes, the check of the schema finds the one that was meant.
    return only === undefined || others.length > 0 ? value : cleaned(only, value);
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? value : value.map((item) => cleaned(items, item));
  }
  const { properties = {}, required = [], additionalProperties } = schema;
  const ignores = isOpen(schema);
  const entries = Object.entries(value).flatMap(([name, given]: [string, unknown]) => {
    if (Object.hasOwn(properties, name)) {
      if (given === null && !required.includes(name) && !allowsNull(properties[name])) return [];
      return [[name, cleaned(properties[name] ?? {}, given)] as const];
    }
    if (ignores) return [];
    return [[name, typeof additionalProperties === "object" ? cleaned(additionalProperties, given) : given] as const];
  });
  return Object.fromEntries(entries);
}

function allowsNull({ type, anyOf = [] }: BodySchema = {}): boolean {
  return type === "null" || anyOf.some(allowsNull);
}
