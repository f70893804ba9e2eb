import { constants } from "node:os";
import { expect, test } from "vitest";
import { fileError } from "../../../../envd/system/errno.ts";
import { AppError } from "../../../../shared/http/errors.ts";

const failed = (code: string) => Object.assign(new Error(`${code}: open`), { code });

test.each(Object.keys(constants.errno))("a file call that fails with %s says why, and where", (errno) => {
  const error = fileError(failed(errno), "/the/path");
  expect(error).toBeInstanceOf(AppError);
  const { code, message } = AppError.from(error);
  expect(message).not.toMatch(/internal error/);
  expect(message).toMatch(/'\/the\/path'|disk space|open file|memory/);
  // What no table foresees has at least its name.
  if (code === "internal") expect(message).toContain(errno);
});

test.each([
  "EACCES",
  "EBUSY",
  "EDQUOT",
  "EEXIST",
  "EFBIG",
  "EINVAL",
  "EIO",
  "EISDIR",
  "ELOOP",
  "EMFILE",
  "EMLINK",
  "ENAMETOOLONG",
  "ENFILE",
  "ENODEV",
  "ENOENT",
  "ENOMEM",
  "ENOSPC",
  "ENOTCONN",
  "ENOTDIR",
  "ENOTEMPTY",
  "ENXIO",
  "EOPNOTSUPP",
  "EOVERFLOW",
  "EPERM",
  "EROFS",
  "ESTALE",
  "ETXTBSY",
  "EXDEV",
  "EAGAIN",
  "EINTR",
  "ENODATA",
  "ENOSYS",
  "ETIMEDOUT",
])("%s, which file calls of Linux answer, is the caller's matter and not a fault of the platform", (errno) => {
  expect(AppError.from(fileError(failed(errno), "/p")).status).not.toBe(500);
});

test("an error of another kind keeps its own words", () => {
  const own = new AppError("not_found", "something else");
  expect(fileError(own, "/p")).toBe(own);
  const bug = new TypeError("a bug");
  expect(fileError(bug, "/p")).toBe(bug);
});
