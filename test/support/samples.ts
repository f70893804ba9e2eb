/** From a schema: a value that passes, and values that must not. What the table of bad inputs is made of. */

import type { Route } from "../../shared/contract.ts";
import { MESSAGES } from "../../shared/validate.ts";

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
  /** The contract's own words, where it has some. */
  readonly message: string | undefined;
}

const UUID = "00000000-0000-4000-8000-000000000000";
const INT32 = 2_147_483_647;

/** The least that passes. */
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

/** For each property of an object, and of objects inside it, the values it must refuse. */
export function bad(schema: Schema, prefix = ""): Bad[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const field = `${prefix}${name}`;
    const own = refused(property).map(([what, keyword, value]) => ({
      what,
      field,
      value,
      message: property[MESSAGES]?.[keyword],
    }));
    return [...own, ...bad(property, `${field}.`)];
  });
}

function refused(schema: Schema): (readonly [what: string, keyword: string, value: unknown])[] {
  if (schema.enum !== undefined)
    return [
      ["an unknown value", "enum", "no-such-value"],
      ["a number", "enum", 5],
    ];
  if (schema.anyOf !== undefined) return [["a number", "anyOf", 5]];
  switch (schema.type) {
    case "object": {
      const map = schema.additionalProperties;
      return [
        ["a list", "type", []],
        ["text", "type", "text"],
        ...(typeof map === "object" ? [["a map of wrong values", "type", { name: 5 }] as const] : []),
        ...(schema.propertyNames?.minLength === 1
          ? [["an empty name", "propertyNames", { "": good(map as Schema) }] as const]
          : []),
      ];
    }
    case "array":
      return [
        ["an object", "type", {}],
        ["text", "type", "text"],
        ...(schema.minItems !== undefined ? [["an empty list", "minItems", []] as const] : []),
        ...(schema.maxItems !== undefined && schema.items !== undefined
          ? [
              [
                "too long a list",
                "maxItems",
                Array.from({ length: schema.maxItems + 1 }, () => good(schema.items ?? {})),
              ] as const,
            ]
          : []),
      ];
    case "integer":
      return [
        ["text", "type", "5"],
        ["a fraction", "type", 1.5],
        ...(schema.minimum !== undefined && schema.minimum > -INT32
          ? [
              ["too small a number", "minimum", schema.minimum - 1] as const,
              ["a negative number", "minimum", -5] as const,
            ]
          : []),
        ...(schema.maximum !== undefined ? [["too large a number", "maximum", schema.maximum + 1] as const] : []),
      ];
    case "boolean":
      return [
        ["text", "type", "true"],
        ["a number", "type", 1],
      ];
    case "string":
      return [
        ["a number", "type", 5],
        ["a list", "type", ["a"]],
        ...((schema.minLength ?? 0) > 0 ? [["empty text", "minLength", ""] as const] : []),
        ...(schema.maxLength !== undefined
          ? [["too long a text", "maxLength", "x".repeat(schema.maxLength + 1)] as const]
          : []),
      ];
    default:
      return [];
  }
}

/** `base` with one field, named by its dotted path, replaced. */
export function withField(base: unknown, path: string, value: unknown): unknown {
  const [name = "", ...rest] = path.split(".");
  const object = typeof base === "object" && base !== null ? (base as Record<string, unknown>) : {};
  return { ...object, [name]: rest.length === 0 ? value : withField(object[name], rest.join("."), value) };
}

/** The path of a route with values that pass in its parameters. */
export function pathOf(route: Route): string {
  const params = (route.params === undefined ? {} : good(route.params as Schema)) as Record<string, string>;
  return route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? "x"));
}

export type { Schema };
