/** Writes values as literals of a language: no character ends a text early. Pure. */

import { FromEnvironment } from "../base/without-secrets.ts";

/** In one line, without spaces. */
export function typescriptOf(value: unknown): string {
  return jsonOf(value, (name) => `process.env.${name}!`);
}

export function pythonOf(value: unknown): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  if (value instanceof FromEnvironment) return `os.environ[${JSON.stringify(value.name)}]`;
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    return `{${given(value)
      .map(([name, each]) => `${JSON.stringify(name)}: ${pythonOf(each)}`)
      .join(", ")}}`;
  }
  return value === undefined || value === null ? "None" : JSON.stringify(value);
}

/** A word of a shell's command. */
export function word(value: string | FromEnvironment): string {
  if (value instanceof FromEnvironment) return `"$${value.name}"`;
  if (/^[\w@%+=:,./-]+$/.test(value)) return value;
  const isPrintable = Array.from(value).every((each) => each >= " " && each !== "\u007f");
  if (isPrintable) return quoted(value);
  const escaped = Array.from(value.replaceAll("\\", "\\\\").replaceAll("'", "\\'"), (each) =>
    each >= " " && each !== "\u007f" ? each : `\\x${each.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
  return `$'${escaped.join("")}'`;
}

/** JSON as a word of a shell's command: the shell puts in what comes from the environment. */
export function jsonWord(value: unknown): string {
  // JSON has no control characters, so that these mark the names.
  const json = jsonOf(value, (name) => `"\u0001${name}\u0001"`);
  const parts = quoted(json).split("\u0001");
  return parts.map((part, index) => (index % 2 === 0 ? part : `'"$${part}"'`)).join("");
}

export function given(options: object): [string, unknown][] {
  return Object.entries(options).filter(([, value]) => value !== undefined);
}

/** Whether a value in it comes from the environment. */
export function readsEnvironment(value: unknown): boolean {
  if (value instanceof FromEnvironment) return true;
  return typeof value === "object" && value !== null && Object.values(value).some(readsEnvironment);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function jsonOf(value: unknown, variable: (name: string) => string): string {
  if (value instanceof FromEnvironment) return variable(value.name);
  if (Array.isArray(value)) return `[${value.map((each) => jsonOf(each, variable)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value ?? null);
  return `{${given(value)
    .map(([name, each]) => `${JSON.stringify(name)}:${jsonOf(each, variable)}`)
    .join(",")}}`;
}
