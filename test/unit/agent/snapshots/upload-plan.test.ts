import { expect, test } from "vitest";
import { isDue, toUpload } from "../../../../agent/snapshots/beyond/upload-plan.ts";

const checkpoint = { kind: "checkpoint", state: "stored", held: undefined, resuming: false, projectId: "p" } as const;
const pause = { ...checkpoint, kind: "pause" } as const;
const only = { paused: false, build: undefined };

test("named snapshots are uploaded always, paused sandboxes where the operator wants it", () => {
  expect(toUpload(checkpoint, only)).toBe(true);
  expect(toUpload(pause, only)).toBe(false);
  expect(toUpload(pause, { ...only, paused: true })).toBe(true);
});

test.each([
  { named: "is being taken", snapshot: { ...pause, state: "taking" } as const },
  { named: "was resumed", snapshot: { ...pause, state: "spent" } as const },
  { named: "is being resumed", snapshot: { ...pause, resuming: true } },
  { named: "has no project", snapshot: { ...checkpoint, projectId: undefined } },
  { named: "is in the holding place", snapshot: { ...checkpoint, held: { since: 1, until: 2, reason: "" } } },
])("what $named is not uploaded", ({ snapshot }) => {
  expect(toUpload(snapshot, { paused: true, build: undefined })).toBe(false);
});

test.each([
  { build: "building", expected: false },
  { build: "ready", expected: true },
  { build: "error", expected: false },
  { build: "deleted", expected: false },
] as const)("the memory of a template whose build is $build is uploaded: $expected", ({ build, expected }) => {
  expect(toUpload(checkpoint, { paused: false, build })).toBe(expected);
});

test("a snapshot is uploaded once it has settled, and after a failure later and later, at most every ten minutes", () => {
  const snapshot = { takenAt: 1_000_000 };
  expect(isDue(snapshot, undefined, 1_014_999)).toBe(false);
  expect(isDue(snapshot, undefined, 1_015_000)).toBe(true);
  const tried = (times: number) => ({ times, at: 2_000_000, message: "" });
  const waits = [1, 2, 3, 7, 50].map((times) => {
    let wait = 0;
    while (!isDue(snapshot, tried(times), 2_000_000 + wait)) wait += 5_000;
    return wait;
  });
  expect(waits).toEqual([15_000, 30_000, 60_000, 600_000, 600_000]);
});
