/** Makes a check from a schema; its error is one readable sentence that names the field. Compiles each schema once. No I/O. */

import type { Static, TSchema } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { AppError } from "./errors.ts";

export interface Check<S extends TSchema> {
  /** The value, typed, or AppError `bad_request` that names the first wrong field. */
  parse(value: unknown): Static<S>;
  passes(value: unknown): boolean;
}

/** A schema may set its own sentence for a keyword, where the wire contract fixes the words; `{field}` in it names the field. */
export const MESSAGES = "x-messages";

/** Of each schema, for as long as somebody has it: two servers of a program serve the same contract. */
const validators = new WeakMap<TSchema, Validator>();

/** `where` stands before the field: "body", "query", "path". */
export function check<S extends TSchema>(schema: S, where: string): Check<S> {
  const compiled = validatorOf(schema);
  return {
    passes: (value) => compiled.Check(value),
    parse(value) {
      if (compiled.Check(value)) return value as Static<S>;
      throw new AppError("bad_request", describe(compiled.Errors(value), schema, where));
    },
  };
}

function validatorOf(schema: TSchema): Validator {
  const known = validators.get(schema);
  if (known !== undefined) return known;
  const compiled = Compile(schema) as Validator;
  validators.set(schema, compiled);
  return compiled;
}

interface Problem {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: object;
}

function describe(problems: readonly Problem[], schema: TSchema, where: string): string {
  const problem = cause(problems);
  if (problem === undefined) return `${where} is invalid`;
  const field = problem.instancePath.split("/").slice(1).map(unescapePointer).join(".");
  const at = field === "" ? where : `${where} field '${shortened(field)}'`;
  const own = ownMessage(problem, schema);
  if (own !== undefined) return own.replace("{field}", () => at);
  if (problem.keyword === "required" && "requiredProperties" in problem.params) {
    const missing = (problem.params.requiredProperties as string[]).join("', '");
    return field === ""
      ? `${where} field '${missing}' is required`
      : `${where} field '${field}.${missing}' is required`;
  }
  if (problem.keyword === "anyOf") {
    const allowed = problems.filter(({ keyword }) => keyword === "const").map(({ params }) => allowedValue(params));
    return allowed.length > 0 ? `${at} must be one of ${allowed.join(", ")}` : `${at} has the wrong type or value`;
  }
  if (problem.keyword === "enum" && "allowedValues" in problem.params) {
    return `${at} must be one of ${(problem.params.allowedValues as unknown[]).join(", ")}`;
  }
  if (problem.keyword === "format" && "format" in problem.params && problem.params.format === "date-time") {
    return `${at} must be a time with its offset from UTC, such as 2026-01-02T03:04:05Z or 2026-01-02T03:04:05+01:00`;
  }
  if (problem.keyword === "propertyNames") return `${at} has a name that is empty, too long or has illegal characters`;
  return `${at} ${problem.message}`;
}

// A union reports each failed branch, then itself. Errors deeper than the union come from the branch that was meant;
// otherwise the union itself names the field. Elsewhere the first problem is the cause.
function cause(problems: readonly Problem[]): Problem | undefined {
  const union = problems.find(({ keyword }) => keyword === "anyOf");
  if (union !== undefined) {
    return problems.find(({ instancePath }) => instancePath.length > union.instancePath.length) ?? union;
  }
  return problems.find(({ keyword }) => keyword === "propertyNames") ?? problems[0];
}

function ownMessage(problem: Problem, schema: TSchema): string | undefined {
  let at: unknown = schema;
  for (const part of problem.schemaPath.split("/").slice(1).map(unescapePointer)) {
    if (typeof at !== "object" || at === null) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[part];
  }
  if (typeof at !== "object" || at === null || !(MESSAGES in at)) return undefined;
  return (at[MESSAGES] as Readonly<Record<string, string>>)[problem.keyword];
}

// Names of map entries come from the caller and may be long.
function shortened(field: string): string {
  return field.length > 200 ? `${field.slice(0, 200)}…` : field;
}

function allowedValue(params: object): string {
  return "allowedValue" in params ? String(params.allowedValue) : "";
}

function unescapePointer(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}
