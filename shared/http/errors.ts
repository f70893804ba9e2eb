/** The one error class and the catalogue of its codes; how an error leaves over HTTP and comes back. No I/O. */

import { SealError } from "../program/sealing/seal-error.ts";
import { storageFailure } from "./storage-failures.ts";

/**
 * Code → HTTP status. The code travels as `error_code`, the status as `code`.
 */
export const catalogue = {
  bad_request: 400,
  failed_precondition: 400,
  memory_snapshots_unavailable: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  sandbox_not_found: 404,
  sandbox_ended: 404,
  template_not_found: 404,
  not_acceptable: 406,
  request_timeout: 408,
  conflict: 409,
  invalid_transition: 409,
  sandbox_start_in_flight: 409,
  gone: 410,
  disk_lost: 410,
  precondition_failed: 412,
  payload_too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  too_many_sandboxes: 429,
  resource_exhausted: 429,
  internal: 500,
  sandbox_create_failed: 500,
  snapshot_failed: 500,
  snapshot_corrupt: 500,
  snapshot_files_missing: 500,
  not_implemented: 501,
  nothing_listening: 502,
  node_unreachable: 503,
  node_busy: 503,
  cluster_at_capacity: 503,
  no_compatible_node: 503,
  unavailable: 503,
  snapshot_incompatible: 503,
  placement_timeout: 504,
  no_space: 507,
} as const satisfies Record<string, number>;

export type ErrorCode = keyof typeof catalogue;

export interface ErrorDetails {
  readonly cause?: unknown;
  /** For the log only: never sent to a caller. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** Whole seconds, sent as `Retry-After`. */
  readonly retryAfterSeconds?: number;
}

/** The error body of every platform operation. */
export interface ErrorBody {
  readonly code: number;
  readonly message: string;
  readonly error_code?: string;
}

/** Thrown for every failure that a caller may see. `message` is safe to send; `details` and `cause` are not. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message: string, more: ErrorDetails = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = "AppError";
    this.code = code;
    this.details = more.details;
    this.retryAfterSeconds = more.retryAfterSeconds;
  }

  get status(): number {
    return catalogue[this.code];
  }

  /** The only place where unknown failures become errors. Their own message stays in `cause`, for the log. */
  static from(reason: unknown): AppError {
    if (reason instanceof AppError) return reason;
    if (reason instanceof SealError) return new AppError("internal", reason.message, { cause: reason.cause });
    const refusal = refusedByFastify(reason);
    if (refusal !== undefined) return new AppError(refusal.code, refusal.message, { cause: reason });
    const failure = storageFailure(reason);
    if (failure !== undefined) return new AppError(failure.code, failure.message, { cause: reason });
    return new AppError("internal", "internal error", { cause: reason });
  }
}

export function isError(reason: unknown, code: ErrorCode): reason is AppError {
  return reason instanceof AppError && reason.code === code;
}

/** The memory of a sandbox cannot be kept, now or at all; its disk can. */
export function isMemoryRefused(reason: unknown): reason is AppError {
  return (
    isError(reason, "snapshot_failed") || isError(reason, "no_space") || isError(reason, "memory_snapshots_unavailable")
  );
}

export function toBody(error: AppError): ErrorBody {
  return { code: error.status, message: error.message, error_code: error.code };
}

/**
 * Converts an error reply of another program of the platform back. An unreadable reply is `node_unreachable`. A refused token is that
 * of the program which called, and never reaches its own caller as that caller's, whichever status it comes with: `unavailable`.
 */
export function fromBody(status: number, body: unknown, from: string): AppError {
  if (status === 401 || (isErrorBody(body) && body.error_code === "unauthorized")) {
    const message = `${from} refuses the token of the platform's own program: their keys differ, and the operator must bring them together`;
    return new AppError("unavailable", message, {
      details: { status, answer: isErrorBody(body) ? body.message : undefined },
    });
  }
  if (isErrorBody(body)) {
    const code = body.error_code;
    if (code !== undefined && isErrorCode(code)) return new AppError(code, body.message);
    return new AppError(codeForStatus(status), body.message);
  }
  return new AppError("node_unreachable", `${from} answered ${status} with an unreadable body`);
}

function isErrorBody(body: unknown): body is ErrorBody {
  if (typeof body !== "object" || body === null) return false;
  return "message" in body && typeof body.message === "string" && "code" in body && typeof body.code === "number";
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(catalogue, code);
}

function codeForStatus(status: number): ErrorCode {
  switch (status) {
    case 400:
      return "bad_request";
    case 401:
      return "unauthorized";
    case 403:
      return "forbidden";
    case 404:
      return "not_found";
    case 409:
      return "conflict";
    case 429:
      return "rate_limited";
    case 503:
      return "unavailable";
    default:
      return "internal";
  }
}

// Malformed JSON, unknown media types and over-long bodies reach the error handler with a status below 500.
function refusedByFastify(reason: unknown): { code: ErrorCode; message: string } | undefined {
  if (!(reason instanceof Error) || !("statusCode" in reason) || typeof reason.statusCode !== "number")
    return undefined;
  if (reason.statusCode < 400 || reason.statusCode >= 500) return undefined;
  if (reason.statusCode === 413) return { code: "payload_too_large", message: reason.message };
  if (reason.statusCode === 415) return { code: "unsupported_media_type", message: reason.message };
  return { code: "bad_request", message: reason.message };
}
