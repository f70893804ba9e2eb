/** Checks the body of a create request and fills in defaults. Errors have the wire contract's texts. Pure. */

import type { IdentityTokens } from "../../shared/api/identity/iam.ts";
import type { NetworkOptions } from "../../shared/api/network.ts";
import type { CreateBody } from "../../shared/api/sandboxes/sandbox-shapes.ts";
import { AppError } from "../../shared/http/errors.ts";
import { type NetworkLimits, readNetwork } from "../network-policy/options.ts";
import { splitPassword } from "../network-policy/secret.ts";

export interface SandboxOptions {
  readonly timeoutSeconds: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly envs: Readonly<Record<string, string>>;
  /** The caller's value; undefined: not given. */
  readonly internet: boolean | undefined;
  /** The network options without the proxy's password. */
  readonly network: NetworkOptions | undefined;
  readonly proxyPassword: string | undefined;
  readonly iam: IdentityTokens | undefined;
  readonly onTimeout: "kill" | "pause";
  readonly onTimeoutMemory: boolean;
  readonly onResume: "restore" | "reboot";
  readonly autoResume: boolean;
}

export interface Limits extends NetworkLimits {
  readonly defaultTimeoutSeconds: number;
  readonly maxHours: number;
}

/** @throws {AppError} bad_request */
export function readOptions(body: CreateBody, limits: Limits): SandboxOptions {
  const timeoutSeconds = body.timeout ?? limits.defaultTimeoutSeconds;
  checkTimeout(timeoutSeconds, limits.maxHours);
  checkLifecycle(body);
  const internet = body.allow_internet_access;
  const network = body.network === undefined ? undefined : readNetwork(body.network, internet, limits);
  return {
    timeoutSeconds,
    metadata: body.metadata ?? {},
    envs: body.envVars ?? {},
    internet,
    ...splitPassword(network),
    iam: readTokens(body.iam?.tokens ?? {}),
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

/** The tokens without properties that the contract does not know. Undefined: none is asked for. */
function readTokens(tokens: NonNullable<NonNullable<CreateBody["iam"]>["tokens"]>): IdentityTokens | undefined {
  const entries = Object.entries(tokens).map(([name, { audience, tokenType }]) => [name, { audience, tokenType }]);
  return entries.length === 0 ? undefined : { tokens: Object.fromEntries(entries) as IdentityTokens["tokens"] };
}
