/** Schema → check with one readable sentence that names the field. Compiles each schema once. No I/O. */

import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { AppError } from "./errors.ts";

export interface Check<S extends TSchema> {
  /** The value, typed, or AppError `bad_request` naming the first field that is wrong. */
  parse(value: unknown): Static<S>;
  passes(value: unknown): boolean;
}

/** `where` is put before the field: "body", "query", "path". */
export function check<S extends TSchema>(schema: S, where: string): Check<S> {
  const compiled = Compile(schema);
  return {
    passes: (value) => compiled.Check(value),
    parse(value) {
      if (compiled.Check(value)) return value;
      throw new AppError("bad_request", describe(compiled.Errors(value), where));
    },
  };
}

interface Problem {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: object;
}

function describe(problems: readonly Problem[], where: string): string {
  // The last problem of a union is the union itself, which names the field; the first of anything else is the cause.
  const problem = problems.find(({ keyword }) => keyword === "anyOf") ?? problems[0];
  if (problem === undefined) return `${where} is invalid`;
  const field = problem.instancePath.split("/").slice(1).map(unescapePointer).join(".");
  const at = field === "" ? where : `${where} field '${field}'`;
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
  return `${at} ${problem.message}`;
}

function allowedValue(params: object): string {
  return "allowedValue" in params ? String(params.allowedValue) : "";
}

function unescapePointer(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}
