/** Checks the body of a create request and fills in defaults. Errors have the wire contract's texts. Pure. */

import type { NetworkOptions } from "../../shared/api/network.ts";
import type { CreateBody } from "../../shared/api/sandboxes/sandbox-shapes.ts";
import { AppError } from "../../shared/http/errors.ts";
import { type NetworkLimits, readNetwork } from "../network/options.ts";
import { apart } from "../network/secret.ts";

export interface SandboxOptions {
  readonly timeoutSeconds: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly envs: Readonly<Record<string, string>>;
  /** The caller's value; undefined: not given. */
  readonly internet: boolean | undefined;
  /** The network options without the proxy's password. */
  readonly network: NetworkOptions | undefined;
  readonly proxyPassword: string | undefined;
  readonly onTimeout: "kill" | "pause";
  readonly onTimeoutMemory: boolean;
  readonly onResume: "restore" | "reboot";
  readonly autoResume: boolean;
}

export interface Limits extends NetworkLimits {
  readonly defaultTimeoutSeconds: number;
  readonly maxHours: number;
}

/** Longest path that Linux takes. */
const MAX_PATH = 4096;

/** @throws {AppError} bad_request, or `not_implemented` that names the option. */
export function readOptions(body: CreateBody, limits: Limits): SandboxOptions {
  const timeoutSeconds = body.timeout ?? limits.defaultTimeoutSeconds;
  checkTimeout(timeoutSeconds, limits.maxHours);
  checkLifecycle(body);
  checkCount(body);
  const network = body.network === undefined ? undefined : readNetwork(body.network, limits);
  checkMounts(body.volumeMounts ?? []);
  refuseLater(body);
  return {
    timeoutSeconds,
    metadata: body.metadata ?? {},
    envs: body.envVars ?? {},
    internet: body.allow_internet_access,
    ...apart(network),
    onTimeout: pauses(body) ? "pause" : "kill",
    onTimeoutMemory: body.autoPauseMemory ?? true,
    onResume: body.onResume ?? "restore",
    autoResume: body.autoResume?.enabled ?? false,
  };
}

/** Checks the project's limit; the schema has checked that the timeout is above zero. */
export function checkTimeout(seconds: number, maxHours: number): void {
  if (seconds > maxHours * 3600) {
    throw new AppError("bad_request", `Timeout cannot be greater than ${maxHours} hours`);
  }
}

function pauses(body: CreateBody): boolean {
  return body.autoPause ?? body.onTimeout === "pause";
}

function checkLifecycle(body: CreateBody): void {
  if (body.autoPause !== undefined && body.onTimeout !== undefined && body.autoPause !== (body.onTimeout === "pause")) {
    throw new AppError("bad_request", "body fields 'autoPause' and 'onTimeout' contradict each other");
  }
  if (body.autoPauseMemory === false) {
    if (!pauses(body)) throw new AppError("bad_request", "body field 'autoPauseMemory' false requires autoPause true");
    if (body.autoResume?.enabled === true) {
      throw new AppError("bad_request", "body field 'autoPauseMemory' false cannot be combined with autoResume");
    }
  }
  // Traffic must not cost a sandbox its memory: only a caller's explicit request may.
  if (body.onResume === "reboot" && body.autoResume?.enabled === true) {
    throw new AppError("bad_request", "body field 'onResume' 'reboot' cannot be combined with autoResume");
  }
}

/** The answer of a create is one sandbox, so more of them could not be answered and are never started silently. */
function checkCount({ count = 1 }: CreateBody): void {
  if (count > 1) {
    throw new AppError(
      "bad_request",
      `body field 'count': a create starts one sandbox, and ${count} were asked for: create one and fork it ` +
        "(POST /sandboxes/{sandboxID}/fork with 'count'), or create each",
    );
  }
}

/** Names every wrong entry by its index, so that a caller can correct all at once (docs/protocol.md, Requests). */
function checkMounts(mounts: readonly { readonly name: string; readonly path: string }[]): void {
  const paths = new Set<string>();
  const wrong = mounts.flatMap(({ name, path }, index) => {
    const at = `'volumeMounts.${index}`;
    const faults = isVolumeName(name) ? [] : [`${at}.name' must be 1 to 128 of a-z, A-Z, 0-9, _ and -`];
    if (!isMountPath(path)) faults.push(`${at}.path' must be an absolute, clean path`);
    else if (paths.has(path)) faults.push(`${at}.path' is used twice`);
    paths.add(path);
    return faults;
  });
  if (wrong.length > 0) throw new AppError("bad_request", `body field ${wrong.join("; ")}`);
}

function isVolumeName(name: string): boolean {
  return /^[a-zA-Z0-9_-]{1,128}$/.test(name);
}

function isMountPath(path: string): boolean {
  const parts = path.split("/").slice(1);
  return /^\/[^\0]*$/.test(path) && path.length <= MAX_PATH && parts.every((part) => !["", ".", ".."].includes(part));
}

// An option that changes what a sandbox may do, or how it lives, is never ignored silently.
function refuseLater(body: CreateBody): void {
  const later = [
    ["volumeMounts", (body.volumeMounts ?? []).length > 0],
    ["iam", Object.keys(body.iam?.tokens ?? {}).length > 0],
  ] as const;
  const found = later.find(([, asked]) => asked);
  if (found !== undefined) {
    throw new AppError("not_implemented", `option ${found[0]} is not implemented by this version of the platform`);
  }
}
