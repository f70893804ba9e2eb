/** Turns of starts on a node: how many there are, who waits, and who is refused. */

import { expect, test } from "vitest";
import type { NodeView } from "../../../../orchestrator/nodes/entry.ts";
import { createStartTurns } from "../../../../orchestrator/nodes/start-turns.ts";

const never = () => new AbortController().signal;
const settled = () => new Promise<void>((resolve) => void setImmediate(resolve));

/** A node that works on `startsAtOnce` starts; undefined: an older agent. */
function turnsOf(startsAtOnce: number | undefined, mostWaiting?: number) {
  const node = { startsAtOnce };
  const get = () => ({ facts: node }) as unknown as NodeView;
  const turns = createStartTurns({ get }, mostWaiting);
  const take = (owner: string, signal = never(), since = Date.now()) => turns.take("n1", { owner, since, signal });
  return { node, turns, take };
}

test.each([
  [1, 4, 3],
  [2, 8, 6],
  [undefined, 16, 12],
])("a node that starts %s at once has %i turns, and one owner has %i of them", async (atOnce, all, own) => {
  const { turns, take } = turnsOf(atOnce);
  let begun = 0;
  const burst = Array.from({ length: all + 5 }, () => take("burst").then((turn) => ({ turn, at: ++begun })));
  await settled();
  expect([begun, turns.waiting().get("n1")]).toEqual([own, all + 5 - own]);
  for (let other = own; other < all; other++) expect((await take(`other ${other}`)).waited).toBe(false);
  void take("one more").then(() => begun++);
  await settled();
  expect(begun).toBe(own);
  (await burst[0])?.turn.release();
  await settled();
  expect(begun).toBe(own + 1);
});

test("a caller that leaves its place leaves nothing behind, and the next one gets the turn", async () => {
  const { turns, take } = turnsOf(1);
  const held = await Promise.all([take("a"), take("b"), take("c"), take("d")]);
  const leaving = new AbortController();
  const left = take("a", leaving.signal);
  const next = take("b");
  expect(turns.waiting()).toEqual(new Map([["n1", 2]]));
  leaving.abort(new Error("left"));
  await expect(left).rejects.toThrow("left");
  held[0].release();
  expect((await next).waited).toBe(true);
  expect(turns.waiting()).toEqual(new Map());
  await expect(take("a", leaving.signal)).rejects.toThrow("left");
});

test("too many that wait are refused in words, those of one owner before all others", async () => {
  const { take } = turnsOf(1, 4);
  const held = await Promise.all(["a", "b", "c", "d"].map((owner) => take(owner)));
  const waiting = Array.from({ length: 3 }, () => take("a"));
  await expect(take("a")).rejects.toMatchObject({
    code: "cluster_at_capacity",
    message: "Failed to place sandbox: cluster at capacity: 3 starts of this project wait for node n1",
  });
  const other = take("b");
  await expect(take("c")).rejects.toThrow("4 starts wait for node n1");
  for (const { release } of held) release();
  for (const turn of [...waiting, other]) (await turn).release();
});

test("a node that was idle in between is asked again how many starts it works on", async () => {
  const { node, turns, take } = turnsOf(1);
  const held = await Promise.all([take("a"), take("b"), take("c"), take("d")]);
  node.startsAtOnce = 2;
  const waiting = take("e");
  for (const { release } of held) release();
  (await waiting).release();
  const more = await Promise.all(["a", "b", "c", "d", "e", "f", "g", "h"].map((owner) => take(owner)));
  expect(more.map(({ waited }) => waited)).not.toContain(true);
  expect(turns.waiting()).toEqual(new Map());
});
