/** Which of the chosen files a COPY step of the console's builds sends. */

import { expect, test } from "vitest";
import { filesUnder, ignoringOf } from "../../../console/src/templates/copied.ts";
import { ignoredBy } from "../../../shared/dockerfile/ignored.ts";

const folder = ["app/main.py", "app/deep/data.bin", "app/main.pyc", "README.md", "z.txt"].map((path) => ({ path }));
const none = ignoredBy("");
const paths = (source: string, isIgnored = none) => filesUnder(folder, source, isIgnored).files.map(({ path }) => path);

test.each([
  [".", ["README.md", "app/deep/data.bin", "app/main.py", "app/main.pyc", "z.txt"]],
  ["app", ["app/deep/data.bin", "app/main.py", "app/main.pyc"]],
  ["./app/main.py", ["app/main.py"]],
  ["app/*.py", ["app/main.py"]],
  ["a*", ["deep/data.bin", "main.py", "main.pyc"]],
  ["none*", []],
])("COPY %s sends what it means", (source, expected) => {
  expect(paths(source)).toEqual(expected);
});

test("what .dockerignore names stays, also below a directory", () => {
  expect(paths("app", ignoredBy("**/*.pyc\napp/deep\n"))).toEqual(["app/main.py"]);
  expect(() => paths("app/deep", ignoredBy("app/deep"))).toThrow(".dockerignore leaves nothing of it");
});

test("a file with the name of the Dockerfile before it counts in place of .dockerignore", () => {
  const named = (...all: string[]) => ignoringOf(all.map((path) => ({ path })))?.path;
  expect(named("a", ".dockerignore", "Dockerfile.dockerignore")).toBe("Dockerfile.dockerignore");
  expect(named(".dockerignore", "b/Dockerfile.dockerignore")).toBe(".dockerignore");
  expect(named("b/.dockerignore")).toBeUndefined();
});

test.each([
  ["../secret", "must not leave the folder"],
  ["lib", "lib is not in the folder"],
  ["ap", "ap is not in the folder"],
])("COPY %s is refused", (source, why) => {
  expect(() => paths(source)).toThrow(why);
});

test("a COPY without a chosen folder says so", () => {
  expect(() => filesUnder([], ".", none)).toThrow("choose the folder");
});
