import { expect, test } from "vitest";
import { afterLoss } from "../../../../../orchestrator/lifecycle/record-state.ts";

const resumption = { seconds: 60, memory: true };
const rewind = { executionId: "e", snapshotId: "s", memory: true };

test.each([
  { of: "a running sandbox", state: "running", becomes: "ends" },
  { of: "one that is being paused", state: "pausing", becomes: "ends" },
  { of: "the source of a snapshot under way", state: "snapshotting", becomes: "ends" },
  { of: "a running one in a rewind", state: "rewinding", rewind: { ...rewind, from: "running" }, becomes: "ends" },
  { of: "a paused one in a rewind", state: "rewinding", rewind: { ...rewind, from: "paused" }, becomes: "paused" },
  { of: "a paused one in a resume", state: "starting", resumption, becomes: "elsewhere" },
  // Its create tries other nodes.
  { of: "a new one", state: "starting", becomes: "stays" },
  { of: "a paused one", state: "paused", becomes: "stays" },
  // The kill ends it, with the reason of the kill.
  { of: "a killed one", state: "killing", becomes: "stays" },
  { of: "an ended one", state: "gone", becomes: "stays" },
] as const)("the loss of the node of $of: it $becomes", ({ becomes, ...record }) => {
  expect(afterLoss({ resumption: undefined, rewind: undefined, ...record })).toBe(becomes);
});
