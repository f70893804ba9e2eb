/** The tree of snapshots and sandboxes, from what the platform lists. */

import { expect, test } from "vitest";
import { lineageOf, type SandboxNode, type Snapshot } from "../../../console/src/sandbox/snapshots/lineage.ts";

const snapshot = (buildID: string, sourceSandboxID: string, minute: number, snapshotID = `${buildID}:default`) =>
  ({
    snapshotID,
    names: [],
    templateID: `t-${buildID}`,
    buildID,
    sourceSandboxID,
    createdAt: at(minute),
  }) satisfies Snapshot;
const start = (sandboxId: string, buildID: string, minute: number) => ({
  sandboxId,
  sandboxTemplateId: `t-${buildID}`,
  sandboxBuildId: buildID,
  timestamp: at(minute),
});

function at(minute: number): string {
  return new Date(Date.UTC(2026, 0, 1, 12, minute)).toISOString();
}

/** The tree as indented lines. */
function lines({ id, snapshots }: SandboxNode, depth = 0): string[] {
  return [
    `${" ".repeat(depth)}${id}`,
    ...snapshots.flatMap(({ ids, sandboxes }) => [
      `${" ".repeat(depth + 1)}${ids.join(" ")}`,
      ...sandboxes.flatMap((each) => lines(each, depth + 2)),
    ]),
  ];
}

test("snapshots stand under their sandbox and sandboxes under their snapshot, the oldest first", () => {
  const snapshots = [snapshot("b3", "child", 30), snapshot("b2", "root", 20), snapshot("b1", "root", 10)];
  const starts = [
    start("later", "b1", 16),
    start("child", "b1", 15),
    start("other", "b2", 25),
    start("apart", "b9", 1),
  ];
  expect(lines(lineageOf("root", snapshots, starts))).toEqual([
    "root",
    " b1:default",
    "  child",
    "   b3:default",
    "  later",
    " b2:default",
    "  other",
  ]);
});

test("a snapshot with several names is one, and a sandbox without snapshots has none", () => {
  const snapshots = [snapshot("b1", "root", 10, "mine:v2"), snapshot("b1", "root", 10, "mine:v1")];
  expect(lines(lineageOf("root", snapshots, []))).toEqual(["root", " mine:v2 mine:v1"]);
  expect(lines(lineageOf("nobody", snapshots, []))).toEqual(["nobody"]);
});
