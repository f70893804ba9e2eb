/** The figures of the console as tables, and which of them are not as they should be. */

import { expect, test } from "vitest";
import { beyond, intoPage, type Judged, tablesOf } from "../../bench/console/figures.ts";
import { summarise } from "../../bench/numbers.ts";

const ten = summarise([10]);
const JUDGED: readonly Judged[] = [
  { name: "usable", unit: "ms", value: 640.4, most: 1_000 },
  { name: "a frame", unit: "ms", value: 16.25, most: 16 },
  { name: "changes", unit: "changes/s", value: 880, least: 900 },
  { name: "memory", unit: "MiB", value: 12.5 },
  { name: "nothing was measured", unit: "ms", value: Number.NaN, most: 16 },
];

test("the page has sizes of parts and files, visits, and each judged figure with its bound", () => {
  const text = tablesOf({
    sizes: { "first load": 47_500 },
    bounds: { "first load": 60_000 },
    files: { "index.js": 40_000, "index.css": 7_500 },
    timed: [{ name: "sandboxes", bytes: 50_000, firstPaint: ten, interactive: ten, shown: ten }],
    slower: 4,
    judged: JUDGED.slice(0, 4),
  });
  for (const line of [
    "| first load | 47.5 | 60.0 |",
    "Every file, in KB: index.js 40.0, index.css 7.5.",
    "| sandboxes | 50.0 KB | 10 ms (p90 10) | 10 ms (p90 10) | 10 ms (p90 10) |",
    "| usable | 640 ms | ≤ 1000 ms |",
    "| changes | 880 changes/s | ≥ 900 changes/s |",
    "| memory | 12.5 MiB | – |",
  ])
    expect(text.split("\n")).toContain(line);
});

test("a figure beyond its bound, and one that is no number, are named", () => {
  expect(beyond(JUDGED)).toEqual([
    "a frame: 16.3 ms, and should be ≤ 16 ms",
    "changes: 880 changes/s, and should be ≥ 900 changes/s",
    "nothing was measured: NaN ms, and should be ≤ 16 ms",
  ]);
});

test("the tables replace what is between the marks of the page, and a page without marks is refused", () => {
  const marks = ["<!-- figures: `npm run bench:console -- --write` -->", "<!-- end of the figures -->"];
  expect(intoPage(`a\n${marks.join("\nold\n")}\nb`, "new")).toBe(`a\n${marks.join("\nnew\n")}\nb`);
  expect(() => intoPage("a page", "new")).toThrow("the page has no place for the figures");
});
