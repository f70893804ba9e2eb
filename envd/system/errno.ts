/** Pure: reads the errno of a failed system call of Node, and converts it to an error of the platform. */

import { AppError, type ErrorCode } from "../../shared/http/errors.ts";

/** `ENOENT` and the like; undefined for anything that is not a failed system call. */
export function errnoOf(reason: unknown): string | undefined {
  if (!(reason instanceof Error)) return undefined;
  if ("errno" in reason && typeof reason.errno === "string") return reason.errno;
  return "code" in reason && typeof reason.code === "string" ? reason.code : undefined;
}

/** Meaning of each errno of a file operation for the caller: code, and words around the path. */
const FILE_ERRORS: Readonly<Record<string, readonly [ErrorCode, (path: string) => string]>> = {
  ENOSPC: ["no_space", () => "not enough disk space available"],
  EDQUOT: ["no_space", () => "not enough disk space available"],
  EMFILE: ["resource_exhausted", () => "the sandbox has no room for another open file"],
  ENFILE: ["resource_exhausted", () => "the sandbox has no room for another open file"],
  ENOMEM: ["resource_exhausted", () => "the sandbox has no memory left for this"],
  ENOENT: ["not_found", (path) => `path '${path}' does not exist`],
  ENOTDIR: ["bad_request", (path) => `a part of path '${path}' is not a directory`],
  EISDIR: ["bad_request", (path) => `path is a directory: '${path}'`],
  ENXIO: ["bad_request", (path) => `path '${path}' is not a regular file`],
  ENODEV: ["bad_request", (path) => `path '${path}' is not a regular file`],
  ENAMETOOLONG: ["bad_request", (path) => `path '${path}' is not a valid path`],
  EINVAL: ["bad_request", (path) => `path '${path}' is not a valid path`],
  ELOOP: ["failed_precondition", (path) => `path '${path}' is a cycle of symbolic links`],
  ETXTBSY: ["failed_precondition", (path) => `path '${path}' is a program that is running`],
  EACCES: ["forbidden", (path) => `path '${path}': permission denied`],
  EPERM: ["forbidden", (path) => `path '${path}': permission denied`],
  EROFS: ["forbidden", (path) => `path '${path}' is on a read-only file system`],
};

/** The errors every file operation can meet, worded for the caller; anything else is passed on as it is. */
export function fileError(reason: unknown, path: string): unknown {
  const known = FILE_ERRORS[errnoOf(reason) ?? ""];
  if (known === undefined) return reason;
  const [code, message] = known;
  return new AppError(code, message(path), { cause: reason });
}
