/**
 * Takes secrets out of text that leaves the machine: values under names that logs redact, secrets that have a form of their own, and
 * every value that this machine is known to keep. Pure.
 */

import { SECRET_KEYS } from "../../shared/program/secret-names.ts";

const GONE = "[redacted]";
/** A shorter value would take ordinary words with it. */
const LEAST = 6;

export type Redact = (text: string) => string;

const names = SECRET_KEYS.map((key) => key.replaceAll(/[[\]"]/g, ""));

/** `nodeKey` is also NODE_KEY and node-key. The last word of a setting's name says what it holds. */
const NAMED = new RegExp(
  `^(?:${names.map((name) => name.replaceAll("-", "[-_]?").replaceAll(/(?<=[a-z])(?=[A-Z])/g, "[-_]?")).join("|")}|(?:.*[-_ .])?(?:tokens?|api[-_]?keys?|secrets?|passwords?|passwd|pass|passphrase|credentials?|seed|private[-_]?key|cookie|signature|authorization)(?:[-_](?:previous|\\d+))?|.*(?:Token|ApiKey|Secret|Password|PrivateKey|Seed)(?:Previous)?|.*(?:_|-)key(?:[-_](?:previous|base64))?)$`,
  "i",
);

/** Names that look like one and hold none: places, numbers and counts. */
const HARMLESS = /(?:_|-)?(?:file|path|ms|count|id|name|kind|minutes|hours|days|used|max|bytes|dir|total|requests)$/i;

export function isSecretName(name: string): boolean {
  return NAMED.test(name) && !HARMLESS.test(name);
}

/** What looks like a secret wherever it stands. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, GONE],
  // The same in a line of JSON, whose line breaks are escaped, is taken by the form above.
  [/\b(?:svc|e2b)_[A-Za-z0-9]{20,}|\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}/g, GONE],
  [/\bsk-[A-Za-z0-9_-]{16,}/g, GONE],
  [/\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}/g, GONE],
  [/\bxox[abeprs]-[A-Za-z0-9-]{10,}/g, GONE],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, GONE],
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?/g, GONE],
  // Credentials in a URL, and in its query.
  [/([a-z][a-z0-9+.-]*:\/\/)[^\s/@:"']*:[^\s@"']*@/gi, `$1${GONE}@`],
  [
    /([?&](?:token|access_token|api[-_]?key|key|secret|password|signature|sig|x-amz-signature|x-amz-credential|x-amz-security-token|code)=)[^\s&"'#]+/gi,
    `$1${GONE}`,
  ],
  [/\b((?:proxy-)?authorization["']?\s*[:=]\s*["']?)(?:(?:bearer|basic|digest|token)\s+)?[^\s"',;}]+/gi, `$1${GONE}`],
  [/\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}/gi, `$1 ${GONE}`],
  [/\b((?:set-)?cookie["']?\s*[:=]\s*["']?)[^\r\n"']+/gi, `$1${GONE}`],
];

/** A name and what stands between it and its value: `name=`, `name: `, `"name":`, also with quotes that are escaped in a string. */
const NAME = /((?:\\*["'])?)([A-Za-z][A-Za-z0-9_.-]*)\1(\s*[=:]\s*)/g;

/** A value ends as it begins. */
const VALUE = /(\\*["'])(?:(?!\1)[\s\S])*(?:\1|$)|\[redacted\]|\[[^\]\n]*\]|\{[^}\n]*\}|[^\s,;&}\])"']+/y;

/** Options of a command line: `--password value`. A file's path such as `/etc/svc/admin-token` has none. */
const OPTION = /(?<!\/[\w.-]{0,80})(--?)([A-Za-z][A-Za-z0-9-]*)(\s+)([^\s"'-][^\s"']*)/g;

/** @param values secrets that this machine keeps */
export function redactor(values: readonly string[]): Redact {
  const known = [...new Set(values.flatMap(formsOf))].filter((value) => value.length >= LEAST);
  const longestFirst = known.toSorted((a, b) => b.length - a.length);
  const plain: Redact = (text) => {
    let left = text;
    for (const value of longestFirst) left = left.replaceAll(value, GONE);
    for (const [form, put] of FORMS) left = left.replaceAll(form, put);
    return withoutOptions(withoutNamed(left));
  };
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
  if (Array.isArray(value)) return value.map((one) => withoutIn(one, plain));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => {
      const isSecret = isSecretName(name) && typeof one !== "boolean" && one !== null;
      return [plain(name), isSecret ? GONE : withoutIn(one, plain)];
    }),
  );
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
  return text.replaceAll(OPTION, (all, dashes: string, name: string, between: string) =>
    isSecretName(name) ? `${dashes}${name}${between}${GONE}` : all,
  );
}

/** Keeps the quotes, so that what reads the text still can. */
function emptied(value: string): string {
  const quote = /^\\*["']/.exec(value)?.[0];
  if (quote !== undefined) return `${quote}${GONE}${quote}`;
  return value === GONE || /^(?:null|true|false|undefined)$/.test(value) ? value : GONE;
}

/** A value as it stands, in a URL, in JSON, and in base64. */
function formsOf(value: string): readonly string[] {
  if (value.length < LEAST) return [];
  const json = JSON.stringify(value).slice(1, -1);
  return [value, json, encodeURIComponent(value), Buffer.from(value).toString("base64").replace(/=+$/, "")];
}
