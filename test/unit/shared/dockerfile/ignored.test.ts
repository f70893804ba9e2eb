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

test.each([
  ["[^a-c]x", ["ax", "cx"], ["dx", "!x/y"]],
  ["[!a]x", ["dx", "d/x"], ["ax", "!x/y"]],
  ["d[^x]x", ["d/x"], []],
  ["[a\\-c]x", ["bx"], ["ax", "-x"]],
  ["\\[id\\].js", ["i.js"], ["[id].js"]],
  ["[id].js", ["[id].js"], ["i.js"]],
  ["a**b", ["axxb"], ["ab", "ax/b", "ax/b/c"]],
  ["{a,b}(c).js+", ["a(c).js"], ["{a,b}(c).js+"]],
])("%j keeps %j and leaves out %j, as Go reads it", (text, kept, left) => {
  const isIgnored = ignoredBy(text);
  expect([kept.map(isIgnored), left.map(isIgnored)]).toEqual([kept.map(() => false), left.map(() => true)]);
});

test("a file that is not UTF-8, as PowerShell writes it, is refused, because nothing of it would be left out", () => {
  const text = Buffer.from("\uFEFFsecrets\r\n", "utf16le").toString("utf8");
  expect(() => ignoredBy(text)).toThrow(".dockerignore is not UTF-8 text, but perhaps UTF-16: save it as UTF-8");
});

test.each(["[id", "x[]", "a\\", "[z-a]", "!a["])(
  "%j is refused by its line, because it may name what must not be sent",
  (line) => {
    expect(() => ignoredBy(`ok\n${line}`)).toThrow(`.dockerignore: '${line}' is not a pattern`);
  },
);
