/**
 * Finds fields of a request that its schema does not know, and says which known one was meant. A closed object refuses
 * each of them. An open one, to which newer clients may add, refuses those that are a known field under another spelling
 * or in another place, and ignores the rest. Pure.
 */

import { AppError } from "../errors.ts";
import { type FieldSchema, isClosed, isOpen, OTHER_NAMES } from "./closed.ts";
import { hasSeveralWords, nearest, slipOf, word } from "./spelling.ts";

/** An object of the request, with the objects around it, the body first. */
interface Place {
  readonly schema: FieldSchema;
  readonly path: readonly string[];
  readonly around: readonly Place[];
}

interface Look {
  /** What the message calls a field. */
  readonly noun: "field" | "query parameter";
  /** Whether a value of the schema is looked into. */
  readonly into: (schema: FieldSchema) => boolean;
}

/**
 * Whether an open object has fields that are ignored.
 * @param options `passes`: the value passes the schema, so its closed objects have no unknown fields
 * @throws {AppError} bad_request that names the field, its place, and the known field that is nearest
 */
export function checkFields(
  schema: FieldSchema,
  value: unknown,
  { noun = "field", passes = false }: { readonly noun?: Look["noun"]; readonly passes?: boolean } = {},
): boolean {
  const into = passes ? holdsOpen : holdsFields;
  if (typeof value !== "object" || value === null || !into(schema)) return false;
  return checkAt({ schema, path: [], around: [] }, value, { noun, into });
}

function checkAt(place: Place, value: object, look: Look): boolean {
  const schema = meant(place.schema, value);
  if (schema === undefined) return false;
  const here = { ...place, schema };
  const inside = (name: string, of: FieldSchema, field: unknown) =>
    typeof field === "object" && field !== null && look.into(of) && checkAt(below(here, name, of), field, look);
  const { items, additionalProperties } = schema;
  if (Array.isArray(value)) {
    if (items === undefined || !look.into(items)) return false;
    return some(value.entries(), ([index, item]) => inside(String(index), items, item));
  }
  const properties = schema.properties ?? {};
  return some(Object.entries(value), ([name, field]: [string, unknown]) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (known !== undefined) return inside(name, known, field);
    if (typeof additionalProperties === "object") return inside(name, additionalProperties, field);
    if (!isClosed(schema) && !isOpen(schema)) return false;
    const bracketed = look.noun === "query parameter" ? inBrackets(schema, name) : undefined;
    const advice =
      bracketed ?? (isClosed(schema) ? closedAdvice(here, name, field) : knownElsewhere(here, name, field));
    if (advice === undefined) return true;
    throw new AppError(
      "bad_request",
      `\`${shortened([...here.path, name].join("."))}\` is not a ${look.noun}: ${advice}`,
    );
  });
}

/** Whether a value of the schema can be an object, or hold one. */
function holdsFields({ anyOf, items, properties, additionalProperties }: FieldSchema): boolean {
  if (properties !== undefined || anyOf !== undefined) return true;
  if (items !== undefined) return holdsFields(items);
  return typeof additionalProperties === "object" && holdsFields(additionalProperties);
}

const openness = new WeakMap<FieldSchema, boolean>();

/** Whether a value of the schema can be an open object, or hold one. Each schema is walked once. */
function holdsOpen(schema: FieldSchema): boolean {
  const known = openness.get(schema);
  if (known !== undefined) return known;
  const { anyOf = [], items, properties = {}, additionalProperties } = schema;
  const inner = [...anyOf, ...Object.values(properties), ...(items === undefined ? [] : [items])];
  if (typeof additionalProperties === "object") inner.push(additionalProperties);
  const holds = isOpen(schema) || inner.some(holdsOpen);
  openness.set(schema, holds);
  return holds;
}

/** Unlike `Array.some`, looks at all of them: each may throw. */
function some<T>(items: Iterable<T>, test: (item: T) => boolean): boolean {
  let found = false;
  for (const item of items) found = test(item) || found;
  return found;
}

function below(around: Place, name: string, schema: FieldSchema): Place {
  return { schema, path: [...around.path, name], around: [...around.around, around] };
}

/** Of several shapes the one whose constant the value has. Undefined: none; the check of the schema says what is wrong. */
function meant(schema: FieldSchema, value: object): FieldSchema | undefined {
  if (schema.anyOf === undefined) return schema;
  const shapes = schema.anyOf.filter(({ type }) => type === (Array.isArray(value) ? "array" : "object"));
  const [only, ...others] = shapes;
  if (others.length === 0) return only;
  const fields = value as Readonly<Record<string, unknown>>;
  return shapes.find(({ properties = {} }) =>
    Object.entries(properties).some(
      ([name, { const: constant }]) => constant !== undefined && fields[name] === constant,
    ),
  );
}

function closedAdvice(place: Place, name: string, value: unknown): string {
  const elsewhere = knownElsewhere(place, name, value);
  if (elsewhere !== undefined) return elsewhere;
  const names = Object.keys(place.schema.properties ?? {});
  const near = nearest(name, names);
  if (near !== undefined) return `did you mean \`${near}\`?`;
  const where = place.path.length === 0 ? "the request" : `\`${shortened(place.path.join("."))}\``;
  return names.length === 0 ? `${where} takes none` : `${where} takes ${names.map((each) => `\`${each}\``).join(", ")}`;
}

/** The sentence that names what was meant: a known field in another spelling, or in another place. */
function knownElsewhere(place: Place, name: string, value: unknown): string | undefined {
  const names = Object.keys(place.schema.properties ?? {});
  const given = word(name);
  if (given !== "") {
    const own = names.find((each) => word(each) === given);
    if (own !== undefined) return `did you mean \`${own}\`?`;
    const other = Object.entries(place.schema[OTHER_NAMES] ?? {}).find(([each]) => word(each) === given);
    if (other !== undefined) return `did you mean ${other[1]}?`;
    const there = inside(place.schema, given, isOpen(place.schema)) ?? outside(place, given);
    if (there !== undefined) return `did you mean \`${shortened(there.join("."))}\`?`;
  }
  const wrapped = wrappedIn(place.schema, value);
  if (wrapped !== undefined) return `did you mean \`${wrapped}\`, without \`${shortened(name)}\` around it?`;
  const slip = slipOf(name, names);
  return slip === undefined ? undefined : `did you mean \`${slip}\`?`;
}

/** In queries PHP, Rails and qs write lists and maps as `state[0]` and `metadata[user]`. Undefined for any other name. */
function inBrackets({ properties = {} }: FieldSchema, name: string): string | undefined {
  const given = word(/^([^[\]]+)\[/.exec(name)?.[1] ?? "");
  const known = given === "" ? undefined : Object.keys(properties).find((each) => word(each) === given);
  if (known === undefined) return undefined;
  const description = properties[known]?.description;
  return `did you mean \`${known}\`, without brackets?${typeof description === "string" ? ` (${description})` : ""}`;
}

/** A field of the objects inside: it was sent too high. Shallow ones come first. */
function inside(schema: FieldSchema, given: string, open: boolean): readonly string[] | undefined {
  const fields = Object.entries(schema.properties ?? {}).flatMap(([name, each]) =>
    shapesOf(each).map(({ path, shape, direct }) => ({ path: [name, ...path], shape, direct })),
  );
  for (const { path, shape, direct } of fields) {
    for (const name of Object.keys(shape.properties ?? {})) {
      // A newer client may have a field of one word, such as `name`, beside a list whose items have one.
      if (word(name) === given && (!open || direct || hasSeveralWords(name))) return [...path, name];
    }
  }
  for (const { path, shape } of fields) {
    const deeper = inside(shape, given, open);
    if (deeper !== undefined && (!open || hasSeveralWords(deeper.at(-1) ?? ""))) return [...path, ...deeper];
  }
  return undefined;
}

interface Shape {
  /** From the field on: `[]` stands for an item of a list, `*` for an entry of a map. */
  readonly path: readonly string[];
  readonly shape: FieldSchema;
  /** Not an item of a list, nor an entry of a map. */
  readonly direct: boolean;
}

/** The objects with fields that a field may hold. */
function shapesOf(schema: FieldSchema): readonly Shape[] {
  const { anyOf = [], items, properties, additionalProperties } = schema;
  const behind = (path: string, of: FieldSchema): readonly Shape[] =>
    shapesOf(of).map((each) => ({ path: [path, ...each.path], shape: each.shape, direct: false }));
  return [
    ...(properties === undefined ? [] : [{ path: [], shape: schema, direct: true }]),
    ...anyOf.flatMap(shapesOf),
    ...(items === undefined ? [] : behind("[]", items)),
    ...(typeof additionalProperties === "object" ? behind("*", additionalProperties) : []),
  ];
}

/** A field of an object around this one: it was sent too deep. */
function outside({ around }: Place, given: string): readonly string[] | undefined {
  for (const { schema, path } of around.toReversed()) {
    const name = Object.keys(schema.properties ?? {}).find((each) => word(each) === given);
    if (name !== undefined) return [...path, name];
  }
  return undefined;
}

/** The known field in an object that the caller put around it. */
function wrappedIn(schema: FieldSchema, value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const fields = Object.keys(schema.properties ?? {}).map((name) => [word(name), name] as const);
  const words = Object.keys(value).map(word);
  const found = fields.filter(([each]) => words.includes(each));
  // An open object may get a newer client's object, which may share a field of one word, such as `name`.
  const certain = !isOpen(schema) || words.length === found.length;
  return found.find(([, name]) => certain || hasSeveralWords(name))?.[1] ?? wrappedDeeper(schema, words);
}

/** The same for fields of the objects inside, where the name can mean nothing else: `{ egress: { denyOut } }`. */
function wrappedDeeper(schema: FieldSchema, words: readonly string[]): string | undefined {
  for (const each of words) {
    const there = each === "" ? undefined : inside(schema, each, isOpen(schema));
    if (there !== undefined && hasSeveralWords(there.at(-1) ?? "")) return there.join(".");
  }
  return undefined;
}

// Names come from the caller and may be long.
function shortened(name: string): string {
  return name.length > 200 ? `${name.slice(0, 200)}…` : name;
}
