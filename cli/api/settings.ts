/**
 * Which platform a command talks to, and with which key: from the environment, the chosen context, or what `scripts/up`
 * has left on this machine. A stored key goes to the address that it is stored with and to no other.
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { usage } from "../failure.ts";
import { type ContextEntry, type Environment, readContexts } from "./contexts.ts";

export interface Settings {
  /** Where these settings come from, for `auth whoami`. */
  readonly source: string;
  readonly apiUrl: string;
  /** One address for all sandboxes, which finds them by headers. Absent: each has a host of its own, below `domain`. */
  readonly sandboxUrl: string | undefined;
  readonly domain: string | undefined;
  readonly apiKey: string | undefined;
  readonly adminToken: string | undefined;
  /** Where root of this machine finds the operators' token. Undefined: the platform is not this machine's own. */
  readonly adminFile: string | undefined;
}

interface Stored {
  readonly source: string;
  readonly entry: ContextEntry;
}

interface OfMachine extends Stored {
  /** The file that the checkout's machine keeps its operators' tokens in. */
  readonly adminFile: string;
}

/** @param context what `--context` names: then the environment's addresses and keys do not count */
export async function readSettings(env: Environment, context: string | undefined): Promise<Settings> {
  const own = context === undefined ? ofEnvironment(env) : {};
  const isElsewhere = own.apiUrl !== undefined || own.domain !== undefined;
  const machine = ofCheckout(env);
  const stored = isElsewhere ? undefined : ((await ofContext(env, context)) ?? machine);
  const all = { ...stored?.entry, ...own };
  const { sandboxUrl, domain, apiKey, adminToken } = all;
  const url = addressOf(all);
  if (url === undefined) {
    throw usage(
      "there is no platform to talk to",
      "set SVC_API_URL and SVC_API_KEY, add one with `svc context add`, or run ./scripts/up and use ./scripts/svc",
    );
  }
  const adminFile = adminFileOf(machine, url);
  const names = isElsewhere || stored === undefined ? ["environment"] : [stored.source];
  if (!isElsewhere && Object.keys(own).length > 0) names.push("environment");
  return {
    source: names.join(", "),
    apiUrl: checkedUrl(url, "API"),
    sandboxUrl: sandboxUrl === undefined ? undefined : checkedUrl(sandboxUrl, "sandboxes"),
    domain,
    apiKey: checkedKey(apiKey, "API key"),
    adminToken: checkedKey(adminToken ?? firstWord(adminFile), "operators' token"),
    adminFile,
  };
}

/** The token file is for the platform of this machine. The address decides, whether a variable, a context or an option gives it. */
function adminFileOf(machine: OfMachine | undefined, url: string): string | undefined {
  return machine !== undefined && bare(addressOf(machine.entry)) === bare(url) ? machine.adminFile : undefined;
}

function addressOf({ apiUrl, domain }: ContextEntry): string | undefined {
  return apiUrl ?? (domain === undefined ? undefined : `https://api.${domain}`);
}

const bare = (url: string | undefined) => url?.replace(/\/+$/, "");

/** The variables that name a platform or a key, in place of any context. */
export function namedInEnvironment(env: Environment): readonly string[] {
  const names = ["SVC_API_URL", "E2B_API_URL", "SVC_SANDBOX_URL", "E2B_SANDBOX_URL", "E2B_DOMAIN"];
  return [...names, "SVC_API_KEY", "E2B_API_KEY"].filter((name) => (env[name] ?? "").trim() !== "");
}

function ofEnvironment(env: Environment): ContextEntry {
  // A file with Windows line ends leaves a carriage return behind each value.
  const value = (...names: readonly string[]) => names.map((name) => env[name]?.trim()).find((it) => (it ?? "") !== "");
  return defined({
    apiUrl: value("SVC_API_URL", "E2B_API_URL"),
    sandboxUrl: value("SVC_SANDBOX_URL", "E2B_SANDBOX_URL"),
    domain: value("E2B_DOMAIN"),
    apiKey: value("SVC_API_KEY", "E2B_API_KEY"),
    adminToken: value("SVC_ADMIN_TOKEN"),
  });
}

/** Undefined: none is named, and none is the current one. */
async function ofContext(env: Environment, name: string | undefined): Promise<Stored | undefined> {
  const { current, contexts } = await readContexts(env);
  const wanted = name ?? current;
  if (wanted === undefined) return undefined;
  const entry = contexts[wanted];
  if (entry === undefined) throw usage(`there is no context '${wanted}'`, "`svc context list` shows them");
  return { source: `context ${wanted}`, entry };
}

/** What `scripts/up` left in the checkout that `scripts/svc` belongs to. */
function ofCheckout(env: Environment): OfMachine | undefined {
  const checkout = env["SVC_CHECKOUT"] ?? "";
  if (checkout === "") return undefined;
  const instance = env["SVC_INSTANCE"] ?? "";
  const suffix = instance === "" ? "" : `-${instance}`;
  // Nothing below the directories of the Debian package changes: there it is beside the machine's settings.
  const isPackage = existsSync(join(checkout, ".package"));
  const file = join(isPackage ? `/etc/svc${suffix}/own` : join(checkout, `.svc${suffix}`), "env");
  const text = textOf(file);
  if (text === undefined) return undefined;
  const lines = Object.fromEntries(
    text.split("\n").flatMap((line) => {
      const found = /^([A-Z][A-Z0-9_]*)=(.*)$/.exec(line.trim());
      return found?.[1] === undefined ? [] : [[found[1], (found[2] ?? "").replace(/^(['"])(.*)\1$/, "$2")]];
    }),
  ) as Environment;
  return { source: file, entry: ofEnvironment(lines), adminFile: `/etc/svc${suffix}/admin-token` };
}

/** A key that no header can have would be shown by the error of the request. */
function checkedKey(text: string | undefined, of: string): string | undefined {
  if (text === undefined || /^[!-~]+$/.test(text)) return text;
  throw usage(
    `the ${of} has a blank, a line break or a character that no key has`,
    "copy it once more: `svc auth login` reads it from standard input, SVC_API_KEY and SVC_ADMIN_TOKEN from the environment",
  );
}

function firstWord(file: string | undefined): string | undefined {
  const word = file === undefined ? undefined : textOf(file)?.split(/\s/, 1)[0];
  return word === "" ? undefined : word;
}

/** Undefined where the file is not there, or not for this user. */
function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** @throws {Failure} it is no address, or has a password in it */
export function checkedUrl(text: string, of: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "") {
    throw usage(`'${text}' is no address of the ${of}`, "it looks like http://127.0.0.1:3000");
  }
  if (url.username !== "" || url.password !== "") {
    throw usage(`the address of the ${of} has a user or a password in it`, "leave them out: svc sends its key alone");
  }
  return text.replace(/\/+$/, "");
}

function defined<T extends object>(all: { readonly [K in keyof T]: T[K] | undefined }): Partial<T> {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Partial<T>;
}
