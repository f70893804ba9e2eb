/** Converts errors for Connect: a code for each AppError, and "internal error" for unknown failures. */

import { Code, ConnectError } from "@connectrpc/connect";
import { AppError, type ErrorCode } from "../../shared/http/errors.ts";

/** Other codes are `internal`. */
const RPC_CODES: Partial<Record<ErrorCode, Code>> = {
  bad_request: Code.InvalidArgument,
  failed_precondition: Code.FailedPrecondition,
  unauthorized: Code.Unauthenticated,
  forbidden: Code.PermissionDenied,
  not_found: Code.NotFound,
  conflict: Code.AlreadyExists,
  resource_exhausted: Code.ResourceExhausted,
  no_space: Code.ResourceExhausted,
  not_implemented: Code.Unimplemented,
  unavailable: Code.Unavailable,
};

export function toConnectError(reason: unknown): ConnectError {
  if (reason instanceof ConnectError) return reason;
  const error = AppError.from(reason);
  return new ConnectError(error.message, RPC_CODES[error.code] ?? Code.Internal, undefined, undefined, error.cause);
}
