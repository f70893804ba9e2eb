/** The entries of a directory that the page shows. */

import { expect, test } from "vitest";
import { shownOf } from "../../../console/src/sandbox/files/entries.ts";

const entry = (name: string, type = "FILE_TYPE_FILE") => ({ name, path: `/${name}`, type });

test("directories come first, and names are in the order of words", () => {
  const { shown, left } = shownOf([entry("b"), entry("a"), entry("B"), entry("z", "FILE_TYPE_DIRECTORY")]);
  expect([shown.map(({ name }) => name), left]).toEqual([["z", "a", "b", "B"], 0]);
});

test("of a directory with very many files a thousand are shown, and the rest is counted", () => {
  const { shown, left } = shownOf(Array.from({ length: 50_000 }, (_none, index) => entry(`file-${index}`)));
  expect([shown.length, left]).toEqual([1_000, 49_000]);
});
