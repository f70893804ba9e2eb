/** Which files the source of a COPY means. */

import { expect, test } from "vitest";
import { mayHold, needsDirectory, readSource, sentAs } from "../../../../shared/dockerfile/sources.ts";

const files = [
  "package.json",
  "package-lock.json",
  "src/a.js",
  "src/[id].js",
  "src/deep/a.js",
  "one/x",
  "two/x",
  "ü-1",
];
const sent = (source: string) => {
  const wanted = readSource(source);
  return files.map((path) => sentAs(path, false, wanted)).filter((name) => name !== undefined);
};

test.each([
  [".", files],
  ["src/a.js", ["src/a.js"]],
  ["./src/", ["src/a.js", "src/[id].js", "src/deep/a.js"]],
  ["package*.json", ["package.json", "package-lock.json"]],
  ["src/*.js", ["src/a.js", "src/[id].js"]],
  ["src/?.js", ["src/a.js"]],
  ["src/[a-c].js", ["src/a.js"]],
  ["src/[^a-c]*.js", ["src/[id].js"]],
  ["src/[[]id].js", ["src/[id].js"]],
  ["src/\\[id].js", ["src/[id].js"]],
  ["*/a.js", ["a.js"]],
  ["s*", ["a.js", "[id].js", "deep/a.js"]],
  ["**/a.js", ["a.js"]],
  ["*/x", ["x", "x"]],
  ["?-[0-9]", ["ü-1"]],
  ["none*", []],
])("COPY %s sends what matches, and of directories what is in them", (source, expected) => {
  expect(sent(source)).toEqual(expected);
});

test.each([
  ["*.json", ["package.json"], false],
  ["*.json", ["package.json", "package-lock.json"], true],
  ["s*", ["src/a.js"], true],
  ["src", ["src/a.js", "src/deep/a.js"], false],
])("COPY %s that means %j wants a directory: %s", (source, paths, expected) => {
  expect(needsDirectory(paths, readSource(source))).toBe(expected);
});

test("directories in which nothing can match are not read", () => {
  expect(mayHold("node_modules", readSource("s*/*.js"))).toBe(false);
  expect(mayHold("src", readSource("s*/*.js"))).toBe(true);
  expect(mayHold("src/deep", readSource("src"))).toBe(true);
});

test.each([
  ["a/../b", "must not leave the folder"],
  ["a[b", "'a[b' is not a pattern"],
  ["[z-a]", "'[z-a]' is not a pattern"],
])("COPY %s is refused", (source, why) => {
  expect(() => readSource(source)).toThrow(why);
});
