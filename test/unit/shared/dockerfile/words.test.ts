/** The words of an instruction: what the platform makes of their values is what Docker makes of the words. */

import { expect, test } from "vitest";
import { substitute } from "../../../../shared/dockerfile/substitute.ts";
import { valueOf, wordsOf } from "../../../../shared/dockerfile/words.ts";

const variables: Readonly<Record<string, string>> = { A: "1", AB: "no" };

test.each([
  ["plain", "plain"],
  ['"a b"', "a b"],
  ['a"b c"d', "ab cd"],
  ["'$A'\"$A\"", "$A1"],
  ['"/x":$A', "/x:1"],
  ['$A"B"', "1B"],
  ["$A\\B", "1B"],
  ["$A''B", "1B"],
  ["a\\ b", "a b"],
  ["\\$A", "$A"],
  ["'a\\b'", "a\\b"],
  ["C:\\dir", "C:dir"],
  ['"\\$A \\" \\n \\\\"', '$A " \\n \\'],
  ["a$", "a$"],
  ['"$"A', "$A"],
  ["${B:-x y}", "x y"],
  ['${B:-"x }"}', "x }"],
  ["${B:-'$A'}", "$A"],
  ["${B:-\\\\$A}", "\\1"],
  ["\"${A:+'x'}\"", "x"],
  ["${B:-${A:+'}'}}", "}"],
  ["${A%\\*}", "1"],
  ["", ""],
])("%s is %j", (word, value) => {
  expect(substitute(valueOf(word), (name) => variables[name])).toBe(value);
});

test.each([
  ["it's", "has a quote without an end"],
  ['"a', "has a quote without an end"],
  ["'\\'$A", "has a backslash before a variable"],
  ["\\\\$A", "has a backslash before a variable"],
  ["${A%'x'}", "has a quote in a pattern"],
])("%s is refused: it %s", (word, why) => {
  expect(() => valueOf(word)).toThrow(why);
});

test("words end at blanks that are not quoted", () => {
  expect(wordsOf('A="a b" B=c\\ d  \'E F\'="g\\" h"\tI="j k')).toEqual([
    'A="a b"',
    "B=c\\ d",
    '\'E F\'="g\\" h"',
    'I="j k',
  ]);
});
