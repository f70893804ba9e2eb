import { expect, test } from "vitest";
import { clockFindings, clockSkewMs } from "../../../../orchestrator/nodes/clock.ts";
import type { NodeView } from "../../../../orchestrator/nodes/entry.ts";

const HEARD = Date.parse("2026-11-27T12:00:00Z");

function node(at: number | undefined): Pick<NodeView, "id" | "load" | "lastHeardAt"> {
  const load = (at === undefined ? {} : { at }) as NodeView["load"];
  return { id: "n1", load, lastHeardAt: HEARD };
}

test("the difference of a node's clock is that of its last report; an older agent sends none", () => {
  expect(clockSkewMs(node(HEARD - 40))).toBe(-40);
  expect(clockSkewMs(node(undefined))).toBeUndefined();
});

test.each([
  ["says no time", undefined],
  ["is right", HEARD],
  ["was heard late", HEARD - 30_000],
  ["is half a minute ahead", HEARD + 30_000],
])("a node that %s has no finding of its clock", (_what, at) => {
  expect(clockFindings(node(at))).toEqual([]);
});

test.each([
  [HEARD + 600_000, "600 s ahead of the orchestrator's"],
  [HEARD - 45_400, "45 s behind the orchestrator's"],
])("a clock that is wrong is a finding with both times and the way out", (at, off) => {
  expect(clockFindings(node(at))).toEqual([
    {
      id: "node.clock",
      problem: expect.stringContaining(`the clock of node 'n1' is ${off}`) as unknown,
      evidence: `its last report was sent at ${new Date(at).toISOString()} by its clock and came at 2026-11-27T12:00:00.000Z`,
      wayOut: expect.stringContaining("timedatectl set-ntp true") as unknown,
    },
  ]);
});
