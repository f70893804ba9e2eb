/**
 * Finds the running platform that the suites drive, by the env file that `scripts/up` leaves, and sends plain HTTP to it.
 */

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface Platform {
  /** The name of the instance; empty for the default instance. */
  readonly instance: string;
  readonly apiUrl: string;
  readonly sandboxUrl: string;
  readonly apiKey: string;
  readonly adminToken: string;
  /** The directories of this instance (scripts/README.md). */
  readonly paths: { readonly run: string; readonly state: string; readonly etc: string };
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; undefined when it is no JSON. */
  readonly json: unknown;
}

export interface ApiCall {
  /** The body as JSON; a string is sent unchanged. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The API key: the platform's key when absent, no key at all when null. */
  readonly key?: string | null;
  /** For calls that store much on a busy machine. */
  readonly timeoutMs?: number;
}

export const checkout = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * Opens the instance that SVC_INSTANCE names, else `fallback`. Its E2B_* lines go into this process's environment, so that
 * tests use the SDK exactly as `scripts/up` recommends. Throws when no such platform was brought up.
 * @param directory the checkout that has brought it up, with a slash at its end
 */
export function openPlatform(fallback = "test", directory = checkout): Platform {
  const instance = process.env.SVC_INSTANCE ?? fallback;
  const suffix = instance === "" ? "" : `-${instance}`;
  const file = `${directory}.svc${suffix}/env`;
  const adminFile = `/etc/svc${suffix}/admin-token`;
  if (!existsSync(file) || !existsSync(adminFile)) {
    throw new Error(`no platform: ${file} does not exist; run SVC_INSTANCE=${instance} ./scripts/up`);
  }
  const values = readEnvFile(file);
  const domain = process.env.SVC_TEST_DOMAIN;
  // From elsewhere a program has the domain, which the caller of the tests has set, and the key, and nothing else.
  const needed = (name: string) => (domain === undefined ? name.startsWith("E2B_") : name === "E2B_API_KEY");
  for (const [name, value] of values) if (needed(name)) process.env[name] = value;
  return {
    instance,
    apiUrl: domain === undefined ? need(values, "SVC_API_URL", file) : `https://api.${domain}`,
    sandboxUrl: domain === undefined ? need(values, "SVC_SANDBOX_URL", file) : `https://sandbox.${domain}`,
    apiKey: need(values, "SVC_API_KEY", file),
    adminToken: readFileSync(adminFile, "utf8").split(/\s/, 1)[0] ?? "",
    paths: { run: `/run/svc${suffix}`, state: `/var/lib/svc${suffix}`, etc: `/etc/svc${suffix}` },
  };
}

/** Reads `NAME=value` lines, with or without `export` and quotes. */
export function readEnvFile(path: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const line of readFileSync(path, "utf8").split("\n")) {
    const found = /^(?:export\s+)?([A-Za-z_]\w*)=(.*)$/.exec(line.trim());
    if (found?.[1] === undefined || found[2] === undefined) continue;
    values.set(found[1], found[2].replace(/^(['"])(.*)\1$/, "$2"));
  }
  return values;
}

/** Sends one control-plane request, with path and body unchanged. */
export async function api(platform: Platform, method: string, path: string, call: ApiCall = {}): Promise<Reply> {
  const key = call.key === undefined ? platform.apiKey : call.key;
  const body = call.body === undefined || typeof call.body === "string" ? call.body : JSON.stringify(call.body);
  const response = await fetch(platform.apiUrl + path, {
    method,
    headers: {
      ...(key === null ? {} : { "x-api-key": key }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...call.headers,
    },
    body: body ?? null,
    signal: AbortSignal.timeout(call.timeoutMs ?? 60_000),
  });
  return readReply(response);
}

export function asAdmin(platform: Platform): Pick<ApiCall, "headers" | "key"> {
  return { key: null, headers: { "x-admin-token": platform.adminToken } };
}

export async function readReply(response: Response): Promise<Reply> {
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: parse(text) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function need(values: ReadonlyMap<string, string>, name: string, file: string): string {
  const value = values.get(name);
  if (value === undefined || value === "") throw new Error(`${file} has no ${name}`);
  return value;
}
