/** Walks the request bodies of an OpenAPI document and misspells each field of each object, as callers do. Pure. */

import { good, type Schema } from "./samples.ts";

/** An object of a request body, with the objects around it. */
export interface BodyObject {
  readonly schema: Schema;
  /** From the body to the object: names, `0` for the item of a list, a name for the entry of a map. */
  readonly at: readonly string[];
  readonly parent: BodyObject | undefined;
}

export interface Misspelling {
  readonly how: "case" | "underscore" | "too deep" | "too high" | "wrapped";
  /** The field that was meant. */
  readonly field: string;
  /** As the refusal names it. */
  readonly place: string;
  readonly body: unknown;
  /** The object to which the misspelled field was added. */
  readonly host: BodyObject;
}

/** Every object with fields of its own, the body first. */
export function objectsOf(schema: Schema, at: readonly string[] = [], parent?: BodyObject): BodyObject[] {
  const { anyOf = [], items, properties, additionalProperties } = schema;
  const here = properties === undefined || Object.keys(properties).length === 0 ? undefined : { schema, at, parent };
  const around = here ?? parent;
  return [
    ...(here === undefined ? [] : [here]),
    ...anyOf.flatMap((each) => objectsOf(each, at, parent)),
    ...(items === undefined ? [] : objectsOf(items, [...at, "0"], around)),
    ...(typeof additionalProperties === "object" ? objectsOf(additionalProperties, [...at, "a.example"], around) : []),
    ...Object.entries(properties ?? {}).flatMap(([name, each]) => objectsOf(each, [...at, name], around)),
  ];
}

/** @param all the objects of the body */
export function misspellingsOf(root: Schema, object: BodyObject, all: readonly BodyObject[]): Misspelling[] {
  const fields = Object.entries(object.schema.properties ?? {});
  const children = all.filter(({ parent }) => parent === object);
  return fields.flatMap(([field, schema]) => {
    const value = good(schema);
    const added = (how: Misspelling["how"], host: BodyObject, name: string, given: unknown = value): Misspelling => {
      const own = good(host.schema) as Record<string, unknown>;
      const place = [...host.at, name].join(".");
      return { how, field, place, body: placed(root, host.at, { ...own, [name]: given }), host };
    };
    const { parent } = object;
    return [
      added("case", object, inOtherCase(field)),
      added("underscore", object, underscored(field)),
      ...children.filter(knowsNo(field)).map((child) => added("too deep", child, field)),
      ...(parent === undefined || !knowsNo(field)(parent) ? [] : [added("too high", parent, field)]),
      added("wrapped", object, "options", { [field]: value }),
    ];
  });
}

function knowsNo(field: string): (object: BodyObject) => boolean {
  return ({ schema }) => !Object.hasOwn(schema.properties ?? {}, field);
}

export function inOtherCase(name: string): string {
  const [first = "", ...rest] = name;
  const capital = first.toUpperCase() + rest.join("");
  return capital === name ? name.toLowerCase() : capital;
}

export function underscored(name: string): string {
  if (name.includes("_")) return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const snake = name.replaceAll(
    /([a-z0-9])([A-Z]+)/g,
    (_, end: string, next: string) => `${end}_${next.toLowerCase()}`,
  );
  return snake === name ? `${name}_` : snake;
}

/** The smallest good body with a value at a place. */
function placed(schema: Schema, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  const { anyOf, items, properties, additionalProperties } = schema;
  if (anyOf !== undefined) {
    const shape = anyOf.find((each) => objectsOf(each).some(({ at }) => at.length >= rest.length));
    return placed(shape ?? {}, [name, ...rest], value);
  }
  if (items !== undefined) return [placed(items, rest, value)];
  const next = properties?.[name] ?? (typeof additionalProperties === "object" ? additionalProperties : {});
  return { ...(good(schema) as object), [name]: placed(next, rest, value) };
}
