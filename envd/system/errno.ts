/** Pure: reads the errno of a failed system call of Node, and converts it to an error of the platform. */

import { AppError, type ErrorCode } from "../../shared/http/errors.ts";

/** `ENOENT` and the like; undefined for anything that is not a failed system call. */
export function errnoOf(reason: unknown): string | undefined {
  if (!(reason instanceof Error)) return undefined;
  if ("errno" in reason && typeof reason.errno === "string") return reason.errno;
  return "code" in reason && typeof reason.code === "string" ? reason.code : undefined;
}

type Meaning = readonly [ErrorCode, (path: string) => string];

const noSpace: Meaning = ["no_space", () => "not enough disk space available"];
const noOpenFile: Meaning = ["resource_exhausted", () => "the sandbox has no room for another open file"];
const noMemory: Meaning = ["resource_exhausted", () => "the sandbox has no memory left for this"];
const notRegular: Meaning = ["bad_request", (path) => `path '${path}' is not a regular file`];
const tooLarge: Meaning = ["bad_request", (path) => `path '${path}': the file would be, or is, too large`];
const denied: Meaning = ["forbidden", (path) => `path '${path}': permission denied`];
const unsupported: Meaning = ["bad_request", (path) => `path '${path}': its file system does not support this`];
const broken: Meaning = ["failed_precondition", (path) => `path '${path}': the disk or file system under it fails`];
const away: Meaning = ["failed_precondition", (path) => `path '${path}': its file system is not connected`];
const changing: Meaning = ["failed_precondition", (path) => `path '${path}' is in use, try again`];

/** Meaning of each errno of a file operation for the caller: code, and words around the path. */
const FILE_ERRORS: Readonly<Record<string, Meaning>> = {
  ENOSPC: noSpace,
  EDQUOT: noSpace,
  EMFILE: noOpenFile,
  ENFILE: noOpenFile,
  ENOMEM: noMemory,
  ENOBUFS: noMemory,
  ENOENT: ["not_found", (path) => `path '${path}' does not exist`],
  ENOTDIR: ["bad_request", (path) => `a part of path '${path}' is not a directory`],
  EISDIR: ["bad_request", (path) => `path is a directory: '${path}'`],
  EEXIST: ["conflict", (path) => `path '${path}' exists already`],
  ENOTEMPTY: ["failed_precondition", (path) => `path '${path}' is a directory that is not empty`],
  EXDEV: ["failed_precondition", (path) => `path '${path}' is on another file system`],
  EMLINK: ["failed_precondition", (path) => `path '${path}': the directory or file has as many links as it may`],
  ENXIO: notRegular,
  ENODEV: notRegular,
  ENOTBLK: notRegular,
  ESPIPE: notRegular,
  EPIPE: notRegular,
  ENOTTY: notRegular,
  ENAMETOOLONG: [
    "bad_request",
    (path) => `path '${shortened(path)}' is not a valid path: it, or a name in it, is too long`,
  ],
  EINVAL: ["bad_request", (path) => `path '${path}' is not a valid path, or does not take this`],
  EILSEQ: ["bad_request", (path) => `path '${path}' has a name that its file system does not take`],
  E2BIG: tooLarge,
  EFBIG: tooLarge,
  EOVERFLOW: tooLarge,
  ELOOP: ["failed_precondition", (path) => `path '${path}' is a cycle of symbolic links`],
  ETXTBSY: ["failed_precondition", (path) => `path '${path}' is a program that is running`],
  EBUSY: ["failed_precondition", (path) => `path '${path}' is in use, for example as a mount point`],
  EAGAIN: changing,
  EWOULDBLOCK: changing,
  EINTR: changing,
  EDEADLK: changing,
  ENOLCK: changing,
  EACCES: denied,
  EPERM: denied,
  EROFS: ["forbidden", (path) => `path '${path}' is on a read-only file system`],
  EOPNOTSUPP: unsupported,
  ENOTSUP: unsupported,
  ENOSYS: unsupported,
  EIO: broken,
  ENODATA: broken,
  EBADMSG: broken,
  EPROTO: broken,
  EUCLEAN: broken,
  ENOTCONN: away,
  ECONNREFUSED: away,
  EHOSTDOWN: away,
  EHOSTUNREACH: away,
  ENETDOWN: away,
  ENETUNREACH: away,
  ENOLINK: away,
  ESTALE: away,
  ETIMEDOUT: away,
};

/** Longest path in an error: the kernel takes no longer one. */
const LONGEST_PATH = 4096;

function shortened(path: string): string {
  return path.length <= LONGEST_PATH ? path : `${path.slice(0, LONGEST_PATH)}…`;
}

/** The failed system calls of file operations, worded for the caller; an error of another kind is passed on as it is. */
export function fileError(reason: unknown, path: string): unknown {
  const errno = errnoOf(reason) ?? "";
  const known = FILE_ERRORS[errno];
  const options = { cause: reason };
  if (known !== undefined) return new AppError(known[0], known[1](path), options);
  // No file operation is known to fail so; the name is all that there is to say.
  if (/^E[A-Z0-9]+$/.test(errno))
    return new AppError("internal", `path '${path}': the kernel answers ${errno}`, options);
  return reason;
}

/** Throws what `fileError` makes of a failure: for `catch`. */
export function naming(path: string): (reason: unknown) => never {
  return (reason) => {
    throw fileError(reason, path);
  };
}
