/** The platform's scripts by the names that they have where the command is installed. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "./api/contexts.ts";

/** What texts say, which are written for a checkout, and what the Debian package has in its place. */
const OF_PACKAGE: readonly (readonly [RegExp, (name: string, suffix: string) => string])[] = [
  [/git pull && \.\/scripts\/up/g, () => "apt install ./svc_*.deb"],
  [/\.\/scripts\/svc\b/g, () => "svc"],
  [/(?<![\w/.])(?:\.\/)?scripts\/(up|down|node|template|rotate|service|volume)\b/g, (name) => `svc-platform ${name}`],
  [/(?<![\w/])\.svc\/config\.env/g, (_name, suffix) => `/etc/default/svc${suffix}`],
];

/** Rewrites the platform's own texts: a way out must not name a script that this machine does not have. */
export function wordsOf(env: Environment): (text: string) => string {
  const isPackage = existsSync(join(env["SVC_CHECKOUT"] ?? "/nonexistent", ".package"));
  const instance = env["SVC_INSTANCE"] ?? "";
  return (text) => (isPackage ? ofPackage(text, instance === "" ? "" : `-${instance}`) : text);
}

/** Pure. */
export function ofPackage(text: string, suffix: string): string {
  return OF_PACKAGE.reduce(
    (left, [words, put]) => left.replaceAll(words, (_all, name: unknown) => put(String(name), suffix)),
    text,
  );
}
