/** Which sandboxes the filter of the live list shows. */

import { expect, test } from "vitest";
import { pageFile } from "./page-files.ts";

const { EVERY, filtered } = await pageFile<{
  readonly EVERY: object;
  readonly filtered: (
    all: Iterable<object>,
    filter: object,
    at: { readonly now: number; readonly onNode?: ReadonlySet<string>; readonly only?: ReadonlySet<string> },
  ) => readonly { readonly sandboxID: string }[];
}>("sandboxes/filter.ts");

const NOW = Date.UTC(2026, 0, 1, 12);
const row = (sandboxID: string, minutes: number, more: object = {}) => ({
  sandboxID,
  templateID: "t1",
  state: "running",
  startedAt: new Date(NOW - minutes * 60_000).toISOString(),
  ...more,
});
const ALL = [
  row("old", 120, { alias: "base" }),
  row("young", 1, { metadata: { team: "Red" } }),
  row("asleep", 30, { state: "paused" }),
];

test.each<[string, object, readonly string[]]>([
  ["nothing", {}, ["young", "asleep", "old"]],
  ["a state", { state: "paused" }, ["asleep"]],
  ["an age", { age: "60" }, ["old"]],
  ["the youngest", { age: "-30" }, ["young"]],
  ["a word of its label, in any case", { text: "team=red" }, ["young"]],
  ["the name of its template", { text: "BASE" }, ["old"]],
  ["words that no sandbox has together", { text: "base red" }, []],
  ["a node", { node: "n1" }, ["young", "old"]],
  ["a node and a state", { node: "n1", state: "paused" }, []],
])("a filter by %s shows what it names, the newest first", (_name, filter, expected) => {
  const shown = filtered(ALL, { ...EVERY, ...filter }, { now: NOW, onNode: new Set(["old", "young"]) });
  expect(shown.map(({ sandboxID }) => sandboxID)).toEqual(expected);
});

test("of the sandboxes of a key no others are shown", () => {
  const shown = filtered(ALL, { ...EVERY, state: "running" }, { now: NOW, only: new Set(["old", "asleep", "ended"]) });
  expect(shown.map(({ sandboxID }) => sandboxID)).toEqual(["old"]);
});

test("of a node whose sandboxes are not known yet none is shown, and nothing is done with one by mistake", () => {
  expect(filtered(ALL, { ...EVERY, node: "n1" }, { now: NOW })).toEqual([]);
});
