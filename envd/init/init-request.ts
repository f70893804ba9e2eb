/** Pure: checks the body of POST /init field by field. */

import { AppError } from "../../shared/http/errors.ts";
import type { Settings } from "./session.ts";

export interface InitRequest {
  readonly settings: Settings;
  /** Milliseconds since 1970; undefined when absent. */
  readonly timestamp: number | undefined;
  /** PEM; empty removes the authority, undefined changes nothing. */
  readonly caBundle: string | undefined;
  /** The node's next token. */
  readonly controlToken: string | undefined;
}

/** Unknown fields are ignored. @throws {AppError} bad_request naming the field */
export function parseInit(body: Readonly<Record<string, unknown>>): InitRequest {
  return {
    settings: {
      accessToken: emptyIsAbsent(text(body, "accessToken")),
      envVars: variables(body["envVars"], "envVars"),
      networkVariables: variables(body["networkVariables"], "networkVariables"),
      defaultUser: emptyIsAbsent(text(body, "defaultUser")),
      defaultWorkdir: emptyIsAbsent(text(body, "defaultWorkdir")),
      sandboxId: emptyIsAbsent(text(body, "sandboxId")),
      templateId: emptyIsAbsent(text(body, "templateId")),
      executionId: emptyIsAbsent(text(body, "executionId")),
    },
    timestamp: time(text(body, "timestamp")),
    caBundle: text(body, "caBundle"),
    controlToken: emptyIsAbsent(text(body, "controlToken")),
  };
}

/** The body of PUT /ca-bundle. @throws {AppError} bad_request */
export function parseTrust(body: Readonly<Record<string, unknown>>): string {
  const caBundle = text(body, "caBundle");
  if (caBundle === undefined) throw new AppError("bad_request", "caBundle is missing");
  return caBundle;
}

function text(body: Readonly<Record<string, unknown>>, field: string): string | undefined {
  const value = body[field];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw new AppError("bad_request", `${field} must be a text`);
  return value;
}

function emptyIsAbsent(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}

function variables(value: unknown, field: string): Record<string, string> {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value))
    throw new AppError("bad_request", `${field} must be an object`);
  const checked: Record<string, string> = {};
  for (const [name, variable] of Object.entries(value)) {
    // The name only: a value may be a secret.
    if (typeof variable !== "string")
      throw new AppError("bad_request", `${field}.${name.slice(0, 100)} must be a text`);
    if (name === "" || name.includes("=") || name.includes("\0") || variable.includes("\0"))
      throw new AppError("bad_request", `${field}.${name.slice(0, 100)} is not a valid variable`);
    checked[name] = variable;
  }
  return checked;
}

function time(value: string | undefined): number | undefined {
  if (value === undefined || value === "") return undefined;
  const ms = Date.parse(value);
  if (Number.isNaN(ms)) throw new AppError("bad_request", "timestamp must be an RFC 3339 time");
  return ms;
}
