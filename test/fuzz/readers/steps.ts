/** The texts of a template's steps. */

import { substituted } from "../../../agent/builds/steps/context.ts";
import { must, type Reader, unlessRefused } from "../reader.ts";

export const steps: readonly Reader[] = [
  {
    name: "step-variables",
    promise: "refuses or answers; the result is at most a mebibyte; a text without references stays as it is",
    seeds: () => [
      "$A and ${B}",
      "${A:-${B}}",
      "${A:+x}${C:-$B}",
      "\\$A",
      'a$(b)`c`"d"',
      "$",
      "${",
      "${A:-",
      "${LONG//x/${A%%n*}}",
    ],
    words: [
      "$",
      "${",
      "}",
      ":-",
      ":+",
      "\\$",
      "$A",
      "${LONG}",
      "\n",
      "'",
      "//",
      "##",
      "%",
      "*",
      "?",
      "${LONG//x/$LONG}",
    ],
    longest: 600,
    share: 60_000,
    check(input) {
      const text = input.toString("utf8");
      const values: Readonly<Record<string, string>> = { A: "one", B: "", LONG: "x".repeat(100) };
      const valueOf = (name: string) => (Object.hasOwn(values, name) ? values[name] : undefined);
      const result = unlessRefused(["bad_request"], () => substituted(text, valueOf));
      if (result === undefined) return;
      must(result.length <= 1024 * 1024, "the result is longer than a value may be");
      if (!text.includes("$")) must(result === text, "a text without references was changed");
    },
  },
];
