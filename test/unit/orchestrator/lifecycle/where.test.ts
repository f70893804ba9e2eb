import { expect, test } from "vitest";
import { lacksLabel, onItsNodeOnly, whereToStart } from "../../../../orchestrator/lifecycle/start/where.ts";
import { AppError } from "../../../../shared/http/errors.ts";

test.each([
  { status: "ready", movable: true, where: "home" },
  { status: "standby", movable: true, where: "home" },
  { status: "draining", movable: true, where: "elsewhere" },
  { status: "draining", movable: false, where: "home" },
  { status: "unhealthy", movable: true, where: "elsewhere" },
  { status: "unhealthy", movable: false, where: "nowhere" },
  // The orchestrator has just started.
  { status: "connecting", movable: true, where: "wait" },
  { status: undefined, movable: true, where: "elsewhere" },
  { status: undefined, movable: false, where: "nowhere" },
] as const)("from a node that is $status a start goes $where (movable: $movable)", ({ status, movable, where }) => {
  expect(whereToStart({ status, unreached: false }, movable)).toBe(where);
});

test("a node that reports and is not reached counts as lost", () => {
  expect(whereToStart({ status: "connecting", unreached: true }, true)).toBe("elsewhere");
  expect(whereToStart({ status: "connecting", unreached: true }, false)).toBe("nowhere");
});

test("the refusal says where a snapshot is, why it is nowhere else, and what its loss means", () => {
  expect(onItsNodeOnly("n1", { status: undefined }, { bound: undefined }).message).toBe(
    "Failed to place sandbox: no compatible node: node n1, which held the sandbox's snapshot, was removed; " +
      "the snapshot is on that node only, because it is not in a blob store (SVC_BLOB_STORE): " +
      "it starts again when the node is back, and if the node is lost, its memory and disk are lost with it",
  );
  expect(onItsNodeOnly("n1", { status: "unhealthy" }, { bound: "it mounts volumes" }).message).toContain(
    "node n1, which holds the sandbox's snapshot, is not answering; it mounts volumes: it starts again",
  );
});

test.each([
  ["cluster_at_capacity", "cluster_at_capacity", ""],
  ["no_space", "no_space", ""],
  ["unavailable", "unavailable", ""],
  ["snapshot_incompatible", "no_compatible_node", "no compatible node: "],
  ["internal", "no_compatible_node", "no compatible node: "],
] as const)("a label that the node lacks, and %s elsewhere, is %s", (code, wanted, words) => {
  const cause = new AppError(code, "Failed to place sandbox: its node n1 cannot start it");
  const { code: got, message } = lacksLabel("n1", "gpu=yes", cause);
  expect([got, message]).toEqual([
    wanted,
    `Failed to place sandbox: ${words}node n1, which has the snapshot that it starts from, does not have the label gpu=yes, ` +
      "which the project's nodes must have, and it cannot start on another node: its node n1 cannot start it",
  ]);
});
