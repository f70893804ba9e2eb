/** How long the end of a sandbox waits for an edge, by a clock that the test moves. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ACKNOWLEDGE_MS, CURRENT_MS } from "../../../../orchestrator/edge/following/messages.ts";
import { FollowerStream } from "../../../../orchestrator/edges/follower-stream.ts";

beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

function opened() {
  const cuts: string[] = [];
  const stream = new FollowerStream({
    routes: { running: () => [] },
    nodeOf: () => undefined,
    hello: { is: "hello", followerId: "f", straight: true },
    onCut: (reason) => cuts.push(reason),
  });
  const removed = (): { isOver: boolean } => {
    const state = { isOver: false };
    void stream.removed("i1", "e1", "killed").then(() => {
      state.isOver = true;
    });
    return state;
  };
  return { stream, cuts, removed };
}

test("the limit is longer than an edge goes by its routes alone", () => {
  expect(ACKNOWLEDGE_MS).toBeGreaterThan(CURRENT_MS);
});

test("an acknowledgement ends the wait of its removal, and of no other", async () => {
  const { stream, removed } = opened();
  const first = removed();
  const second = removed();
  stream.done(1);
  stream.done(99);
  await vi.advanceTimersByTimeAsync(0);
  expect([first.isOver, second.isOver]).toEqual([true, false]);
});

test("an edge that does not acknowledge in time is cut off, and its later removals wait as long", async () => {
  const { stream, cuts, removed } = opened();
  const first = removed();
  await vi.advanceTimersByTimeAsync(600);
  // What the edge may go by for another while.
  stream.pong(1);
  const second = removed();
  await vi.advanceTimersByTimeAsync(ACKNOWLEDGE_MS - 601);
  expect([first.isOver, stream.isOpen]).toEqual([false, true]);
  await vi.advanceTimersByTimeAsync(1);
  expect([first.isOver, second.isOver, stream.isOpen, stream.counts]).toEqual([true, false, false, true]);
  expect(cuts).toEqual([`the edge did not acknowledge the end of sandbox i1 within ${ACKNOWLEDGE_MS} ms`]);
  const third = removed();
  await vi.advanceTimersByTimeAsync(599);
  expect([second.isOver, third.isOver]).toEqual([false, false]);
  await vi.advanceTimersByTimeAsync(1);
  expect([second.isOver, third.isOver, stream.counts]).toEqual([true, true, false]);
});

test("a removal after the edge's connection broke waits until the edge goes by no route of its own", async () => {
  const { stream, removed } = opened();
  stream.pong(1);
  stream.cut("the connection broke");
  const removal = removed();
  await vi.advanceTimersByTimeAsync(ACKNOWLEDGE_MS - 1);
  expect(removal.isOver).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(removal.isOver).toBe(true);
});

test("nothing waits for an edge that was never current, or has said that it stops", async () => {
  const never = opened();
  never.stream.cut("the connection broke");
  const left = opened();
  left.stream.pong(1);
  const waiting = left.removed();
  left.stream.leave();
  const removals = [never.removed(), waiting, left.removed()];
  await vi.advanceTimersByTimeAsync(0);
  expect(removals.map(({ isOver }) => isOver)).toEqual([true, true, true]);
  expect([never.stream.counts, left.stream.counts]).toEqual([false, false]);
});
