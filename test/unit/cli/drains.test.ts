import { expect, test } from "vitest";
import { leftBehind } from "../../../cli/commands/operating/drains.ts";

type Sandboxes = Parameters<typeof leftBehind>[0]["sandboxes"];

const sandboxes: Sandboxes = (["moved", "moved", "stays", "moving", "waiting"] as const).map((state, index) => ({
  sandboxID: `i${index}`,
  was: "running",
  state,
  toNodeID: null,
  reason: index === 0 ? null : `reason ${index}`,
  stallMs: null,
  at: null,
}));
const busy = ["sandbox i1 was moved, and does not run: reason 1", "sandbox i2 stays: reason 2"];

test("the end of a drain names each sandbox that is not elsewhere, with its reason", () => {
  const moving = "sandbox i3 is between two nodes: reason 3";
  expect(leftBehind({ state: "draining", sandboxes })).toEqual([...busy, moving]);
  const waiting = "sandbox i4 is still there: reason 4";
  expect(leftBehind({ state: "overdue", sandboxes })).toEqual([...busy, moving, waiting]);
});
