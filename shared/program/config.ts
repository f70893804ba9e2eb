/** Settings: a program's schema and the environment → a frozen, checked object; reports every problem at once. No I/O. */

import { readFileSync } from "node:fs";
import type { Static, TObject, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { Value } from "typebox/value";

const PREFIX = "SVC_";

export interface ConfigOptions {
  /** Schemas of other programs, whose settings may be in the same environment and are ignored here. */
  readonly others?: readonly TObject[];
}

/** Thrown with one line per problem; the program prints it and exits. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`configuration: ${problems.join("; ")}`);
    this.name = "ConfigError";
    this.problems = problems;
  }
}

/**
 * `SVC_NODE_TIMEOUT_MS=5` sets `nodeTimeoutMs`; `SVC_NODE_TOKEN_FILE=path` sets `nodeToken` from a file.
 * A schema with `variable` names its variable itself. A variable with our prefix that no schema knows is an error.
 */
export function readConfig<S extends TObject>(
  schema: S,
  environment: NodeJS.ProcessEnv,
  options: ConfigOptions = {},
): Readonly<Static<S>> {
  const problems: string[] = [];
  const properties = schema.properties as Record<string, TSchema>;
  const names = variablesOf(schema);
  const foreign = new Set((options.others ?? []).flatMap((other) => [...variablesOf(other).keys()]));
  const given: Record<string, unknown> = {};
  for (const [variable, text] of Object.entries(environment)) {
    if (text === undefined || !(variable.startsWith(PREFIX) || names.has(variable.replace(/_FILE$/, "")))) continue;
    const property = names.get(variable);
    const fileProperty = names.get(variable.replace(/_FILE$/, ""));
    if (property !== undefined) given[property] = text;
    else if (fileProperty !== undefined) given[fileProperty] = readSecret(variable, text, problems);
    else if (!foreign.has(variable) && !foreign.has(variable.replace(/_FILE$/, ""))) {
      problems.push(unknown(variable, names));
    }
  }
  const value = Value.Default(schema, Value.Convert(schema, given));
  const compiled = Compile(schema);
  if (!compiled.Check(value)) {
    for (const problem of compiled.Errors(value)) problems.push(...describe(problem, properties).split("; "));
  }
  if (problems.length > 0) throw new ConfigError([...new Set(problems)]);
  return Object.freeze(value as Static<S>);
}

/** One line per setting: variable, default, meaning. For `--help`. */
export function describeConfig(schema: TObject): string {
  const lines = Object.entries(schema.properties as Record<string, TSchema>).map(([property, setting]) => {
    const facts = setting as { default?: unknown; description?: string };
    const fallback = facts.default === undefined ? "" : ` (default ${JSON.stringify(facts.default)})`;
    return `  ${variableOf(property, setting)}${fallback}\n      ${facts.description ?? ""}`;
  });
  return lines.join("\n");
}

function toVariable(property: string): string {
  return PREFIX + property.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

/** A setting with a name that other programs use too (`DATABASE_URL`) declares it in its schema. */
function variableOf(property: string, setting: { readonly variable?: string } | undefined): string {
  return setting?.variable ?? toVariable(property);
}

/** The properties of a schema by their variables. */
function variablesOf(schema: TObject): ReadonlyMap<string, string> {
  const properties = Object.entries(schema.properties as Record<string, TSchema>);
  return new Map(properties.map(([property, setting]) => [variableOf(property, setting), property]));
}

function readSecret(variable: string, path: string, problems: string[]): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    problems.push(`${variable}: cannot read ${path}`);
    return undefined;
  }
}

function describe(
  problem: { instancePath: string; message: string; keyword: string; params: object },
  properties: Record<string, TSchema>,
): string {
  const named = (property: string) => variableOf(property, properties[property]);
  if (problem.keyword === "required" && "requiredProperties" in problem.params) {
    return (problem.params.requiredProperties as string[]).map((name) => `${named(name)} is required`).join("; ");
  }
  return `${named(problem.instancePath.slice(1))} ${problem.message}`;
}

function unknown(variable: string, names: ReadonlyMap<string, string>): string {
  const nearest = [...names.keys()]
    .map((name) => ({ name, far: distance(name, variable) }))
    .sort((a, b) => a.far - b.far)[0];
  const close = nearest !== undefined && nearest.far <= 3 ? nearest.name : undefined;
  return `${variable} is not a setting${close === undefined ? "" : ` (did you mean ${close}?)`}`;
}

// Levenshtein distance in one row: names are short, and this runs only for a mistake.
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
