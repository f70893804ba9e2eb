/** To which states a sandbox can be put back, and what is said before. */

import { expect, test } from "vitest";
import type { Snapshot } from "../../../console/src/sandbox/snapshots/lineage.ts";
import { consequencesOf, earlierStates } from "../../../console/src/sandbox/snapshots/states.ts";

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 12, minute)).toISOString();
const snapshot = (buildID: string, sourceSandboxID: string | undefined, minute: number, name = buildID): Snapshot => ({
  snapshotID: name,
  names: [],
  templateID: `t-${buildID}`,
  buildID,
  createdAt: at(minute),
  ...(sourceSandboxID === undefined ? {} : { sourceSandboxID }),
});

test("the earlier states are the snapshot that a sandbox was started from, and those before it", () => {
  const from = snapshot("b2", "parent", 20);
  const all = [
    snapshot("b3", "parent", 30),
    from,
    snapshot("b1", "parent", 10),
    snapshot("b1", "parent", 10, "b1:another-name"),
    snapshot("b0", "stranger", 5),
  ];
  expect(earlierStates([from], all).map(({ buildID }) => buildID)).toEqual(["b2", "b1"]);
  expect(earlierStates([], all)).toEqual([]);
  expect(earlierStates([snapshot("b9", undefined, 40)], all).map(({ buildID }) => buildID)).toEqual(["b9"]);
});

test("the earlier states are those of every ancestor, until it led to the next one", () => {
  const parent = snapshot("p1", "parent", 40);
  const grandparent = snapshot("g2", "grandparent", 20);
  const all = [
    parent,
    snapshot("p2", "parent", 50),
    snapshot("p0", "parent", 30),
    grandparent,
    snapshot("g3", "grandparent", 25),
    snapshot("g1", "grandparent", 10),
  ];
  expect(earlierStates([parent, grandparent], all).map(({ buildID }) => buildID)).toEqual(["p1", "p0", "g2", "g1"]);
});

test("a rewind of a running sandbox tells the time that is lost, and the snapshots and volumes that stay", () => {
  const to = snapshot("b1", "me", 10);
  const snapshots = [to, snapshot("b2", "me", 11), snapshot("b2", "me", 11, "b2:v1"), snapshot("b3", "other", 12)];
  const { lost, kept } = consequencesOf({
    sandbox: { sandboxID: "me", state: "running", volumeMounts: [{ name: "data", path: "/mnt" }] },
    to,
    snapshots,
    now: Date.parse(at(12)),
  });
  expect(lost[0]).toBe(
    "All that its programs have done in the 2 m 0 s since the snapshot: processes, memory and files.",
  );
  expect(lost[1]).toContain("connections");
  expect(kept).toEqual([
    "Its id, addresses, tokens, network rules and labels.",
    "The time of its end.",
    "Files of its volumes, as they are now: data.",
    "A snapshot that it took later.",
  ]);
});

test("a rewind of a paused sandbox tells that its paused state goes and that it runs then", () => {
  const to = snapshot("b1", "me", 10);
  const { lost, kept } = consequencesOf({
    sandbox: { sandboxID: "me", state: "paused" },
    to,
    snapshots: [to],
    now: Date.parse(at(12)),
  });
  expect(lost[1]).toBe("The state with which it was paused. It runs afterwards, for 5 minutes.");
  expect(kept).toHaveLength(1);
});
