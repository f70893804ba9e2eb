/** Pure: which errno a failed system call of Node had, and which of ours it is. */

import { AppError } from "../shared/errors.ts";

/** `ENOENT` and the like; undefined for anything that is not a failed system call. */
export function errnoOf(reason: unknown): string | undefined {
  if (!(reason instanceof Error)) return undefined;
  if ("errno" in reason && typeof reason.errno === "string") return reason.errno;
  return "code" in reason && typeof reason.code === "string" ? reason.code : undefined;
}

/** The errors every file operation can meet, worded for the caller; anything else is passed on as it is. */
export function fileError(reason: unknown, path: string): unknown {
  const options = { cause: reason };
  switch (errnoOf(reason)) {
    case "ENOSPC":
    case "EDQUOT":
      return new AppError("no_space", "not enough disk space available", options);
    case "EMFILE":
    case "ENFILE":
    case "ENOMEM":
      return new AppError("resource_exhausted", "the sandbox has no room for another open file", options);
    case "ENOENT":
      return new AppError("not_found", `path '${path}' does not exist`, options);
    case "ENOTDIR":
      return new AppError("bad_request", `a part of path '${path}' is not a directory`, options);
    case "EISDIR":
      return new AppError("bad_request", `path is a directory: '${path}'`, options);
    case "ELOOP":
      return new AppError("failed_precondition", `path '${path}' is a cycle of symbolic links`, options);
    case "ENAMETOOLONG":
    case "EINVAL":
      return new AppError("bad_request", `path '${path}' is not a valid path`, options);
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new AppError("forbidden", `path '${path}' cannot be changed: permission denied`, options);
    default:
      return reason;
  }
}
