/** Makes, from a schema, a value that passes and values that must not pass: the source of the table of bad inputs. */

import type { Route } from "../../shared/http/contract.ts";
import { MESSAGES } from "../../shared/http/validate.ts";

interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly additionalProperties?: Schema | boolean;
  readonly propertyNames?: Schema;
  readonly [MESSAGES]?: Readonly<Record<string, string>>;
}

export interface Bad {
  readonly what: string;
  readonly field: string;
  readonly value: unknown;
  /** The contract's own message, where it has one. */
  readonly message: string | undefined;
}

const UUID = "00000000-0000-4000-8000-000000000000";
const INT32 = 2_147_483_647;

/** Returns the smallest value that passes. */
export function good(schema: Schema): unknown {
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.const !== undefined) return schema.const;
  if (schema.anyOf !== undefined) return good(schema.anyOf[0] ?? {});
  switch (schema.type) {
    case "object":
      return Object.fromEntries((schema.required ?? []).map((name) => [name, good(schema.properties?.[name] ?? {})]));
    case "array":
      return Array.from({ length: schema.minItems ?? 0 }, () => good(schema.items ?? {}));
    case "integer":
    case "number":
      return Math.max(1, schema.minimum ?? 1);
    case "boolean":
      return true;
    case "string":
      return goodText(schema);
    default:
      return null;
  }
}

function goodText({ format, pattern, minLength = 0 }: Schema): string {
  if (format === "uuid") return UUID;
  if (format === "date-time") return "2026-01-02T03:04:05.678Z";
  if (pattern?.includes("[0-9a-f]{64}") === true) return "a".repeat(64);
  if (pattern?.startsWith("^https") === true) return "https://example.test/hook";
  return "base".padEnd(minLength, "x");
}

/** Lists, for each property of an object and of the objects inside it, the values that it must refuse. */
export function bad(schema: Schema, prefix = ""): Bad[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const field = `${prefix}${name}`;
    const own = refused(property).map(([what, keyword, value]) => ({
      what,
      field,
      value,
      message: property[MESSAGES]?.[keyword]?.replace("{field}", `body field '${field}'`),
    }));
    return [...own, ...bad(property, `${field}.`)];
  });
}

/** Lists the optional fields of an object and of the objects inside it, as dotted paths. */
export function optional({ properties = {}, required = [] }: Schema, prefix = ""): string[] {
  return Object.entries(properties).flatMap(([name, property]) => [
    ...(required.includes(name) ? [] : [`${prefix}${name}`]),
    ...optional(property, `${prefix}${name}.`),
  ]);
}

type Refused = readonly [what: string, keyword: string, value: unknown];

function refused(schema: Schema): readonly Refused[] {
  if (schema.enum !== undefined) {
    return [
      ["an unknown value", "enum", "no-such-value"],
      ["a number", "enum", 5],
    ];
  }
  if (schema.anyOf !== undefined) {
    // Of a number or null, no other number is wrong for being one.
    const number = schema.anyOf.find(({ type }) => type === "integer");
    return number === undefined ? [["a number", "anyOf", 5]] : refused(number);
  }
  switch (schema.type) {
    case "object":
      return refusedObject(schema);
    case "array":
      return refusedArray(schema);
    case "integer":
      return refusedInteger(schema);
    case "boolean":
      return [
        ["text", "type", "true"],
        ["a number", "type", 1],
      ];
    case "string":
      return refusedText(schema);
    default:
      return [];
  }
}

function refusedObject({ additionalProperties: map, propertyNames }: Schema): Refused[] {
  const list: Refused[] = [
    ["a list", "type", []],
    ["text", "type", "text"],
  ];
  if (typeof map !== "object") return list;
  list.push(["a map of wrong values", "type", { name: 5 }]);
  if (propertyNames?.minLength === 1) list.push(["an empty name", "propertyNames", { "": good(map) }]);
  return list;
}

function refusedArray({ items = {}, minItems, maxItems }: Schema): Refused[] {
  const list: Refused[] = [
    ["an object", "type", {}],
    ["text", "type", "text"],
  ];
  if (minItems !== undefined) list.push(["an empty list", "minItems", []]);
  if (maxItems !== undefined) {
    list.push(["too long a list", "maxItems", Array.from({ length: maxItems + 1 }, () => good(items))]);
  }
  return list;
}

function refusedInteger({ minimum, maximum }: Schema): Refused[] {
  const list: Refused[] = [
    ["text", "type", "5"],
    ["a fraction", "type", 1.5],
  ];
  if (minimum !== undefined && minimum > -INT32) {
    list.push(["too small a number", "minimum", minimum - 1], ["a negative number", "minimum", -5]);
  }
  if (maximum !== undefined) list.push(["too large a number", "maximum", maximum + 1]);
  return list;
}

function refusedText({ minLength = 0, maxLength }: Schema): Refused[] {
  const list: Refused[] = [
    ["a number", "type", 5],
    ["a list", "type", ["a"]],
  ];
  if (minLength > 0) list.push(["empty text", "minLength", ""]);
  if (maxLength !== undefined) list.push(["too long a text", "maxLength", "x".repeat(maxLength + 1)]);
  return list;
}

/** Returns `base` with one field replaced; a dotted path names the field. */
export function withField(base: unknown, path: string, value: unknown): unknown {
  const [name = "", ...rest] = path.split(".");
  const object = typeof base === "object" && base !== null ? (base as Record<string, unknown>) : {};
  return { ...object, [name]: rest.length === 0 ? value : withField(object[name], rest.join("."), value) };
}

/** Returns the path of a route, with passing values for its parameters. */
/** @param own replaces parameters of these names */
export function pathOf(route: Route, own: Readonly<Record<string, string>> = {}): string {
  const params = { ...((route.params === undefined ? {} : good(route.params)) as Record<string, string>), ...own };
  return route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? "x"));
}

export type { Schema };
