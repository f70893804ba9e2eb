import { describe, expect, test } from "vitest";
import { copyState, outcomeOf } from "../../../../orchestrator/snapshots/check-plan.ts";
import type { CheckedPart, PartState, SnapshotCheck } from "../../../../shared/agent-api/snapshot-check-shapes.ts";
import type { CheckedCopy } from "../../../../shared/api/stored/snapshot-checks.ts";

type States = Partial<Record<CheckedPart["part"], PartState>>;

const partsOf = (states: States): CheckedPart[] =>
  Object.entries(states).map(([part, state]) => ({
    part: part as CheckedPart["part"],
    state,
    bytes: 1,
    faulty: state === "whole" || state === "read" ? 0 : 1,
    faults: [],
  }));

const check = (state: SnapshotCheck["state"], states: States = {}): SnapshotCheck => ({
  state,
  doneBytes: 0,
  totalBytes: 0,
  parts: partsOf(states),
});

const copy = (place: string, states: States | "gone" | "away" | "running"): CheckedCopy => {
  const common = { place: place === "store" ? ("store" as const) : ("node" as const), nodeID: place, error: null };
  const none = { ...common, doneBytes: 0, totalBytes: 0, parts: [] };
  if (states === "running") return { ...none, state: "running" };
  if (states === "gone") return { ...none, state: "missing" };
  if (states === "away") return { ...none, state: "unread", error: "the node does not answer" };
  return { ...none, state: copyState(check("ended", states)), parts: partsOf(states) };
};

const WHOLE = { memory: "whole", disk: "read", image: "whole" } as const;

test.each([
  [check("waiting"), "waiting"],
  [check("running"), "running"],
  [check("absent"), "missing"],
  [check("ended", WHOLE), "whole"],
  [check("ended", { ...WHOLE, disk: "unread" }), "unread"],
  [check("ended", { ...WHOLE, disk: "unread", image: "missing" }), "missing"],
  [check("ended", { ...WHOLE, image: "missing", memory: "damaged" }), "damaged"],
] as const)("a copy is what the worst of its parts is: %j is %s", (of, state) => expect(copyState(of)).toBe(state));

describe("the verdict", () => {
  test.each([
    ["a copy is still read", [copy("n1", WHOLE), copy("store", "running")], null, []],
    ["all copies are whole", [copy("n1", WHOLE), copy("store", WHOLE)], "whole", []],
    ["nothing could be read", [copy("n1", "away")], "unread", []],
    ["there is no copy to read", [], "unread", []],
    [
      "the memory of one copy is damaged",
      [copy("n1", { ...WHOLE, memory: "damaged" }), copy("store", WHOLE)],
      "damaged",
      [{ part: "memory", places: ["store"] }],
    ],
    [
      "two copies have different damages",
      [copy("n1", { ...WHOLE, memory: "damaged" }), copy("n2", WHOLE), copy("store", { ...WHOLE, disk: "missing" })],
      "damaged",
      [
        { part: "memory", places: ["node/n2", "store"] },
        { part: "disk", places: ["node/n1", "node/n2"] },
      ],
    ],
    [
      "the only copy of the disk is damaged",
      [copy("n1", { ...WHOLE, disk: "damaged" })],
      "lost",
      [{ part: "disk", places: [] }],
    ],
    [
      "the damaged part could not be read in the other copy",
      [copy("n1", { ...WHOLE, disk: "damaged" }), copy("store", "away")],
      "damaged",
      [{ part: "disk", places: [] }],
    ],
    ["the only copy is gone", [copy("n1", "gone")], "lost", []],
    [
      "the node's copy is gone and that of the store is whole",
      [copy("n1", "gone"), copy("store", WHOLE)],
      "damaged",
      [
        { part: "memory", places: ["store"] },
        { part: "disk", places: ["store"] },
        { part: "image", places: ["store"] },
      ],
    ],
  ] as const)("when %s", (_case, copies, verdict, good) => {
    expect(outcomeOf(copies)).toEqual({ verdict, good });
  });
});
