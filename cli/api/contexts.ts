/** The contexts of a user who works with several platforms: `~/.config/svc/config.toml`, which only that user may read. */

import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { Failure, usage } from "../failure.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ContextEntry {
  readonly apiUrl?: string;
  readonly sandboxUrl?: string;
  readonly domain?: string;
  readonly apiKey?: string;
  readonly adminToken?: string;
}

export interface Contexts {
  readonly current: string | undefined;
  readonly contexts: Readonly<Record<string, ContextEntry>>;
}

const FIELDS = {
  api_url: "apiUrl",
  sandbox_url: "sandboxUrl",
  domain: "domain",
  api_key: "apiKey",
  admin_token: "adminToken",
} as const;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function contextsFile(env: Environment): string {
  const set = env["XDG_CONFIG_HOME"] ?? "";
  const home = env["HOME"] ?? "";
  return join(set === "" ? join(home === "" ? ownHome() : home, ".config") : set, "svc", "config.toml");
}

/** Of a user whom the machine does not know, as in a container with any number for one, it is the root directory, as for Docker. */
function ownHome(): string {
  try {
    return userInfo().homedir;
  } catch {
    return "/";
  }
}

export async function readContexts(env: Environment): Promise<Contexts> {
  const file = contextsFile(env);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    const { code = "" } = cause as NodeJS.ErrnoException;
    // ENOTDIR: users of services have /dev/null for a home.
    if (code === "ENOENT" || code === "ENOTDIR") return { current: undefined, contexts: {} };
    const elsewhere = {
      wayOut: "HOME, or XDG_CONFIG_HOME, is that of another user: behind `sudo -u NAME`, -H sets it anew",
    };
    throw new Failure(`cannot read ${file}: ${(cause as Error).message}`, {
      cause,
      ...(code === "EACCES" ? elsewhere : {}),
    });
  }
  if ((statSync(file).mode & 0o077) !== 0) {
    throw usage(`others can read ${file}, which holds keys`, `chmod 600 ${file}`);
  }
  const { parse } = await import("smol-toml");
  try {
    const { current, contexts = {} } = parse(text) as { current?: unknown; contexts?: Record<string, unknown> };
    return {
      current: typeof current === "string" && current !== "" ? current : undefined,
      contexts: Object.fromEntries(Object.entries(contexts).map(([name, entry]) => [name, entryOf(entry)])),
    };
  } catch (cause) {
    // The lines behind the first one show the file, and with it a key.
    const [problem = ""] = (cause as Error).message.split("\n", 1);
    const at = (cause as { readonly line?: number }).line;
    const place = at === undefined ? "" : ` (line ${at})`;
    throw usage(`${file} cannot be read: ${problem}${place}`, "mend it, or remove it and add contexts again");
  }
}

function entryOf(value: unknown): ContextEntry {
  const table = typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  return Object.fromEntries(
    Object.entries(FIELDS).flatMap(([field, name]) =>
      typeof table[field] === "string" && table[field] !== "" ? [[name, table[field]]] : [],
    ),
  );
}

/** Replaces the file in one step. */
export async function writeContexts(env: Environment, { current, contexts }: Contexts): Promise<void> {
  const { stringify } = await import("smol-toml");
  const tables = Object.fromEntries(
    Object.entries(contexts).map(([name, entry]) => [
      name,
      Object.fromEntries(
        Object.entries(FIELDS).flatMap(([field, key]) => (entry[key] === undefined ? [] : [[field, entry[key]]])),
      ),
    ]),
  );
  const file = contextsFile(env);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}.new`;
  writeFileSync(fresh, stringify({ ...(current === undefined ? {} : { current }), contexts: tables }), { mode: 0o600 });
  chmodSync(fresh, 0o600);
  renameSync(fresh, file);
}

export function checkedName(name: string): string {
  if (NAME.test(name)) return name;
  throw usage(`'${name}' is no name of a context`, "letters, digits, '.', '_' and '-', at most 64");
}
