/** What this version knows of a body that a program of a later version has sent. Pure. */

import type { BodySchema } from "./closed.ts";

/** A copy of `body` without the fields that its objects do not have in the schema, at any depth. Entries of maps stay. */
export function knownFields(schema: BodySchema, body: unknown): unknown {
  if (typeof body !== "object" || body === null) return body;
  const { anyOf, items, properties, additionalProperties } = schema;
  if (anyOf !== undefined) {
    const shape = anyOf.find((one) => fits(one, body));
    return shape === undefined ? body : knownFields(shape, body);
  }
  if (Array.isArray(body)) return items === undefined ? body : body.map((item) => knownFields(items, item));
  const entries = Object.entries(body).flatMap(([name, value]: [string, unknown]) => {
    const known = properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (known !== undefined) return [[name, knownFields(known, value)] as const];
    if (typeof additionalProperties === "object") return [[name, knownFields(additionalProperties, value)] as const];
    // Of an object without fields of its own, such as a map, each entry is a value.
    return properties === undefined ? [[name, value] as const] : [];
  });
  return Object.fromEntries(entries);
}

/** Of several shapes the first one whose required fields the value has. */
function fits({ type, required = [] }: BodySchema, value: object): boolean {
  if (Array.isArray(value)) return type === "array";
  return type === "object" && required.every((name) => Object.hasOwn(value, name));
}
