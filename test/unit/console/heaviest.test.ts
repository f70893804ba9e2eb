/** Which sandboxes the list names as those with most memory in use. */

import { expect, test } from "vitest";
import { heaviest } from "../../../console/src/sandboxes/heaviest.ts";

const using = (memUsed: number) => ({
  timestamp: "2026-01-01T00:00:00.000Z",
  timestampUnix: 1_767_225_600,
  cpuCount: 1,
  cpuUsedPct: 0,
  memUsed,
  memTotal: 512,
  memCache: 0,
  diskUsed: 0,
  diskTotal: 0,
});

test("sandboxes with most memory in use come first, and no more than are shown", () => {
  const found = heaviest({ a: using(10), b: using(300), c: using(20), d: using(5) }, 3);
  expect(found.map(([id, { memUsed }]) => [id, memUsed])).toEqual([
    ["b", 300],
    ["c", 20],
    ["a", 10],
  ]);
});
