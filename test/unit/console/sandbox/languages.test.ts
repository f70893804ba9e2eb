/** What the field for files knows of a file by its name and its text. */

import { expect, test } from "vitest";
import { indentOf, languageOf } from "../../../../console/src/sandbox/files/field/languages.ts";

test.each([
  ["/home/user/app.py", "python"],
  ["/root/.bashrc", "shell"],
  ["/etc/app.d/a.YAML", "yaml"],
  ["/a/tsconfig.json", "json"],
  ["/a/main.rs", "rust"],
])("%s is in %s", (path, name) => {
  expect(languageOf(path)?.name).toBe(name);
});

test("a Dockerfile is known by each of its names", () => {
  const known = languageOf("/srv/build.dockerfile");
  expect(known).toBeDefined();
  for (const name of ["Dockerfile", "Dockerfile.dev", "Containerfile"]) expect(languageOf(`/srv/${name}`)).toBe(known);
});

test.each(["/home/user/notes.txt", "/py.d/file", "/a/go.sum", "/home/user/constructor", "/a/__proto__", ""])(
  "%j is in no language",
  (path) => {
    expect(languageOf(path)).toBeUndefined();
  },
);

test("a new line is moved as the lines that are there", () => {
  expect(["a\n\tb", "a\n    b\n      c", "a\nb", "", "a\n   \n  b"].map(indentOf)).toEqual([
    "\t",
    "    ",
    "  ",
    "  ",
    "  ",
  ]);
});
