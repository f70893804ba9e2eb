import { expect, test } from "vitest";
import { resolvePath } from "../../../../envd/system/paths.ts";

const user = { name: "user", uid: 1000, gid: 1000, home: "/home/user", groups: [] };

test.each([
  ["/a/../b//c/", undefined, "/b/c"],
  ["/", undefined, "/"],
  ["/../..", undefined, "/"],
  ["x.txt", undefined, "/home/user/x.txt"],
  ["./d/x", undefined, "/home/user/d/x"],
  ["../other", undefined, "/home/other"],
  ["", undefined, "/home/user"],
  ["~", undefined, "/home/user"],
  ["~/x", undefined, "/home/user/x"],
  ["~other/x", undefined, "/home/user/~other/x"],
  ["x", "/work", "/work/x"],
  ["", "/work", "/work"],
  ["~/x", "/work", "/home/user/x"],
  ["x", "~/sub", "/home/user/sub/x"],
  ["x", "sub", "/home/user/sub/x"],
  ["x", "", "/home/user/x"],
  ["ünïcode/日本", undefined, "/home/user/ünïcode/日本"],
])("%j with work directory %j is %s", (path, workdir, expected) => {
  expect(resolvePath(path, user, workdir)).toBe(expected);
});

test("a user without a home is at home in the root directory", () => {
  expect(resolvePath("x", { ...user, home: "/" }, undefined)).toBe("/x");
  expect(resolvePath("~", { ...user, home: "/" }, undefined)).toBe("/");
});
