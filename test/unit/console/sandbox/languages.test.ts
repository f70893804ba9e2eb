/** What the field for files knows of a file by its name and its text. */

import { expect, test } from "vitest";
import { hasTooManyInvisible, indentOf, languageOf } from "../../../../console/src/sandbox/files/field/languages.ts";

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

test("so many invisible characters that the page would stop are noticed, wherever they are, and a coloured log is none", () => {
  const override = "\u202E";
  expect(hasTooManyInvisible(`${"x\n".repeat(150)}${override.repeat(2_001)}`)).toBe(true);
  expect(hasTooManyInvisible(`${override.repeat(21)}\n`.repeat(100))).toBe(true);
  expect(hasTooManyInvisible(override.repeat(2_000))).toBe(false);
  expect(hasTooManyInvisible("\u001B[32minfo\u001B[0m: grün \u{1F642}\n".repeat(20_000))).toBe(false);
});
