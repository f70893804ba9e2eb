/** What .dockerignore leaves out: in Docker the last pattern that matches a path, or a directory above it, decides. */

import { expect, test } from "vitest";
import { ignoredBy } from "../../../../shared/dockerfile/ignored.ts";

test.each([
  ["*\n!package.json\n!src/app.py", ["package.json", "src/app.py"]],
  ["**\n!src", ["src/app.py", "src/deep/x.pyc", "src/x.pyc"]],
  ["**\n!src/\n**/*.pyc", ["src/app.py"]],
  ["src/\n!src/deep", ["README.md", "package.json", "src/deep/x.pyc"]],
  ["\uFEFF# a comment\r\n/src\r\n", ["README.md", "package.json"]],
  ["**.pyc\n/**.md", ["package.json", "src/app.py"]],
  ["**.m?\n**.pyc*", ["README.md", "package.json", "src/app.py", "src/deep/x.pyc", "src/x.pyc"]],
  ["**x.py?\n**p/p.py", ["README.md", "package.json", "src/app.py"]],
  ["src/**x.pyc\n**c/app.py", ["README.md", "package.json"]],
  ["Src\nreadme.MD", ["README.md", "package.json", "src/app.py", "src/deep/x.pyc", "src/x.pyc"]],
  [" src/deep/../app.py  \n./src//x.pyc/", ["README.md", "package.json", "src/deep/x.pyc"]],
  ["src\n!  /src/app.py", ["README.md", "package.json", "src/app.py"]],
  ["#src\n  \n../src\n/\n.\n!", ["README.md", "package.json", "src/app.py", "src/deep/x.pyc", "src/x.pyc"]],
  ["*.pyc", ["README.md", "package.json", "src/app.py", "src/deep/x.pyc", "src/x.pyc"]],
])("%j keeps %j", (text, kept) => {
  const all = ["README.md", "package.json", "src/app.py", "src/deep/x.pyc", "src/x.pyc"];
  const isIgnored = ignoredBy(text);
  expect(all.filter((path) => !isIgnored(path))).toEqual(kept);
});
