import { expect, test } from "vitest";
import { parseCpus } from "../../../../agent/host/cpu-list.ts";

test("lists of processors are read as the kernel writes them", () => {
  expect(["0-2,5\n", "3", "", "x,1"].map(parseCpus)).toEqual([[0, 1, 2, 5], [3], [], [1]]);
});
