/** Drains whose nodes do not start a sandbox again, or do so late: none is left between two nodes, and each has its reason. */

import { expect, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import { drainsForEach, SOON } from "./draining.ts";

const pair = drainsForEach();
const { create, connect, eventsOf, read, routed, onHome, drain, progress, of } = pair;

test("a sandbox whose new node refuses for good to start it runs on on its own node, after one stall", async () => {
  const sandbox = await onHome();
  pair.other.onStart = () => {
    throw new AppError("snapshot_incompatible", "this machine's processor lacks avx512f");
  };
  await drain();
  await expect
    .poll(() => of(sandbox), SOON)
    .toMatchObject({
      state: "stays",
      reason: expect.stringContaining("lacks avx512f") as string,
      stallMs: expect.any(Number) as number,
    });
  expect((await read(sandbox.sandboxID)).state).toBe("running");
  expect([pair.home.live.size, pair.other.live.size]).toEqual([1, 0]);
  expect((await eventsOf(sandbox.sandboxID)).slice(-2)).toEqual(["paused", "resumed"]);
});

test("a sandbox that no node starts again stays paused, and neither the drain nor its clients wait for it", async () => {
  const sandbox = await onHome({ autoResume: { enabled: true } });
  for (const node of [pair.home, pair.other])
    node.onStart = () => {
      throw new AppError("snapshot_corrupt", "the pages of its memory are damaged");
    };
  await drain();
  await expect
    .poll(() => of(sandbox), SOON)
    .toMatchObject({ state: "stays", was: "running", reason: expect.stringContaining("are damaged") as string });
  expect((await read(sandbox.sandboxID)).state).toBe("paused");
  // Not after the time that requests wait for a move.
  const asked = Date.now();
  await routed(sandbox.sandboxID);
  expect(Date.now() - asked).toBeLessThan(30_000);
  expect((await connect(sandbox.sandboxID)).text).toContain("are damaged");
});

test("a sandbox that does not start yet says in the progress why", async () => {
  const sandbox = await onHome();
  const refusal = { stands: true };
  pair.other.onStart = (_start, run) => {
    if (refusal.stands) throw new AppError("no_space", "the disk of this node is full at the moment");
    run();
  };
  await drain();
  await expect
    .poll(() => of(sandbox), SOON)
    .toMatchObject({ state: "moving", reason: expect.stringContaining("is full at the moment") as string });
  refusal.stands = false;
  await expect
    .poll(() => of(sandbox), SOON)
    .toMatchObject({ state: "moved", reason: null, toNodeID: pair.other.nodeId });
});

test("sandboxes that wait for their turn say so, and say after the deadline that it did not come", async () => {
  for (const make of [create, create, onHome]) await make();
  pair.other.onFetch = () => ({ here: false, doneBytes: 1, totalBytes: 2 });
  await drain({ atOnce: 1 });
  const reasons = async () =>
    (await progress()).sandboxes.filter(({ state }) => state === "waiting").map(({ reason }) => reason);
  const turn = "its turn comes: 1 are moved at a time";
  await expect.poll(reasons, SOON).toEqual([turn, turn]);
  await drain({ atOnce: 1, deadlineSeconds: 1 });
  const late = "the deadline has passed before its turn";
  await expect.poll(reasons, SOON).toEqual([late, late]);
  expect((await progress()).state).toBe("overdue");
});
