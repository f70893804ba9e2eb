/** How our errors leave over Connect: the code of each AppError, and unknown failures as "internal error". */

import { Code, ConnectError } from "@connectrpc/connect";
import { AppError, type ErrorCode } from "../../shared/http/errors.ts";

/** Codes that are not here are `internal`. */
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
