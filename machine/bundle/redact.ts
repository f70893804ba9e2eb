/**
 * Takes secrets out of text that leaves the machine: values under names that logs redact, secrets that have a form of their own, and
 * every value that this machine is known to keep. Pure.
 */

import { SECRET_KEYS } from "../../shared/program/secret-names.ts";
import { GONE, isLogIn, withoutForms, withoutValues } from "./secret-forms.ts";

export type Redact = (text: string) => string;

const names = SECRET_KEYS.map((key) => key.replaceAll(/[[\]"]/g, ""));

/** `nodeKey` is also NODE_KEY and node-key. The last word of a setting's name says what it holds. */
const NAMED = new RegExp(
  `^(?:${names.map((name) => name.replaceAll("-", "[-_]?").replaceAll(/(?<=[a-z])(?=[A-Z])/g, "[-_]?")).join("|")}|(?:.*[-_ .])?(?:tokens?|api[-_]?keys?|secrets?|passwords?|passwd|pass|passphrase|credentials?|seed|private[-_]?key|cookies?|signature|authorization|jwt)(?:[-_](?:previous|\\d+))?|.*(?:Token|ApiKey|Secret|Password|PrivateKey|Seed|Signature|AccountKey|AccessKey|SigningKey)(?:Previous)?|.*[-_]pwd|.*key[-_]?data|.*(?:_|-)key(?:[-_](?:previous|base64))?)$`,
  "i",
);

/** Names that look like one and hold none: places, numbers and counts. */
const HARMLESS = /(?:_|-)?(?:file|path|ms|count|id|name|kind|minutes|hours|days|used|max|bytes|dir|total|requests)$/i;

export function isSecretName(name: string): boolean {
  return NAMED.test(name) && !HARMLESS.test(name);
}

/** A name and what stands between it and its value: `name=`, `name: `, `"name":`, also with quotes that are escaped in a string. */
const NAME = /((?:\\*["'])?)([A-Za-z][A-Za-z0-9_.-]*)\1(\s*[=:]\s*)/g;

/** A value ends as it begins; one of several lines in YAML with the last line that is as far to the right. */
const VALUE =
  /(\\*["'])(?:(?!\1)[\s\S])*(?:\1|$)|[|>][-+]?[ \t]*\n([ \t]+)[^\n]*(?:\n\2[^\n]*)*|\[redacted\]|\[[^\]\n]*\]|\{[^}\n]*\}|[^\s,;&}\])"']+/y;

/** A line that is a setting, or one of YAML with one word: its value has every character up to the end. */
const LINES = [
  /^((?:export )?([A-Z][A-Z0-9_]*)=)(?!["'])(.+)$/gm,
  /^([ \t]*(?:- )?([A-Za-z][A-Za-z0-9_.-]*):[ \t]+)(?!["'[{|>])(\S+)$/gm,
];

/** Options of a command line: `--password value`. A file's path such as `/etc/svc/admin-token` has none. */
const OPTION = /(?<!\/[\w.-]{0,80})(--?([A-Za-z][A-Za-z0-9-]*)\s+)("[^"\n]*"|'[^'\n]*'|[^\s"'-][^\s"']*)/g;

/** @param values secrets that this machine keeps */
export function redactor(values: readonly string[]): Redact {
  const withoutKnown = withoutValues(values);
  const plain: Redact = (text) => withoutOptions(withoutNamed(withoutLines(withoutForms(withoutKnown(text)))));
  return (text) => {
    const whole = withoutInJson(text, plain);
    if (whole !== undefined) return whole;
    const lines = text.split("\n");
    // A private key has several lines.
    if (!lines.some((line) => line.startsWith("{"))) return plain(text);
    return plain(lines.map((line) => withoutInJson(line, plain) ?? line).join("\n"));
  };
}

/** JSON is read, so that no quote in a value hides the rest of it. Undefined: the text is none. */
function withoutInJson(text: string, plain: Redact): string | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    const value = withoutIn(JSON.parse(text), plain);
    return JSON.stringify(value, null, /^[[{]\n( +)/.exec(text)?.[1]);
  } catch {
    return undefined;
  }
}

function withoutIn(value: unknown, plain: Redact): unknown {
  if (typeof value === "string") return withoutInJson(value, plain) ?? plain(value);
  if (Array.isArray(value)) return withoutInList(value, plain);
  if (typeof value !== "object" || value === null) return value;
  const entries: (readonly [string, unknown])[] = Object.entries(value);
  const isNamed = entries.some(([name, one]) => /^(?:name|key)$/i.test(name) && isNameOfSecret(one));
  return Object.fromEntries(
    entries.map(([name, one]) => {
      const isNamesValue = isSecretName(name) || isLogIn(name, one) || (isNamed && /^value$/i.test(name));
      const isSecret = isNamesValue && typeof one !== "boolean" && one !== null;
      return [plain(name), isSecret ? GONE : withoutIn(one, plain)];
    }),
  );
}

const isNameOfSecret = (value: unknown): boolean => typeof value === "string" && isSecretName(value);

/** A list may be the words of a command, in which a secret follows its option. */
function withoutInList(list: readonly unknown[], plain: Redact): readonly unknown[] {
  return list.map((one, index) => {
    const [, option] = /^--?([A-Za-z].*)$/.exec(String(list[index - 1])) ?? [];
    const isSecret = isNameOfSecret(option) && typeof one === "string" && !one.startsWith("-");
    return isSecret ? GONE : withoutIn(one, plain);
  });
}

function withoutLines(text: string): string {
  const emptiedLine = (all: string, start: string, name: string, value: string) =>
    isSecretName(name) ? `${start}${emptied(value)}` : all;
  return LINES.reduce((left, form) => left.replaceAll(form, emptiedLine), text);
}

function withoutNamed(text: string): string {
  let left = "";
  let from = 0;
  for (const found of text.matchAll(NAME)) {
    const at = found.index + found[0].length;
    if (found.index < from || !isSecretName(found[2] ?? "")) continue;
    VALUE.lastIndex = at;
    const value = VALUE.exec(text)?.[0];
    if (value === undefined) continue;
    left += text.slice(from, at) + emptied(value);
    from = at + value.length;
  }
  return left + text.slice(from);
}

function withoutOptions(text: string): string {
  return text.replaceAll(OPTION, (all, start: string, name: string, value: string) =>
    isSecretName(name) ? `${start}${emptied(value)}` : all,
  );
}

/** Keeps the quotes, so that what reads the text still can. */
function emptied(value: string): string {
  const quote = /^\\*["']/.exec(value)?.[0];
  if (quote !== undefined) return `${quote}${GONE}${quote}`;
  return value === GONE || /^(?:null|true|false|undefined)$/.test(value) ? value : GONE;
}
