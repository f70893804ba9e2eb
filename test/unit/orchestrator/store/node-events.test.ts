/** What happened to nodes, as the database keeps it, and the end of a drain against a round of it. */

import { expect, onTestFinished, test } from "vitest";
import { createStore } from "../../../../orchestrator/store/store.ts";
import type { NodeEventKind } from "../../../../shared/api/nodes/node-events.ts";
import { fakeHeartbeat } from "../../../support/fakes/fake-heartbeat.ts";
import { openTestDatabase } from "../../../support/store/databases.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const ID = "n1";
const WISH = { running: "move", atDeadline: "stay", atOnce: 1, deadlineAt: undefined } as const;

/** A store that knows one node. */
async function storeWithNode() {
  const opened = await openTestDatabase();
  onTestFinished(() => opened.close());
  const clock = { now: 1_000_000 };
  const store = createStore(opened.database, () => clock.now, testSeal);
  const url = "http://127.0.0.1:1";
  const of = { nodeId: ID, url, serviceInstanceId: "run", address: "", options: {}, live: [], snapshots: [] };
  const { node, load } = fakeHeartbeat(of);
  await store.nodes.report(node, load, { keyId: undefined, refusal: undefined, news: true });
  const kinds = async () => (await store.nodeEvents.newest(ID, 1_000)).map(({ kind }) => kind).toReversed();
  const note = (...all: NodeEventKind[]) =>
    store.nodeEvents.note(all.map((kind) => ({ nodeId: ID, kind, at: clock.now })));
  return { store, clock, kinds, note };
}

test("what several orchestrators see of a node, or one of them after its restart, is noted once", async () => {
  const { kinds, note } = await storeWithNode();
  await note("returned", "ready", "ready");
  await note("ready");
  await note("unreachable", "unreachable");
  await note("returned", "ready", "returned", "ready");
  expect(await kinds()).toEqual(["ready", "unreachable", "returned", "ready"]);
});

test("what an operator does with a node, its loss and its removal are events, in their order and once each", async () => {
  const { store, clock, kinds, note } = await storeWithNode();
  await note("ready");
  await store.nodes.setWanted(ID, "draining", clock.now);
  await store.nodes.setWanted(ID, "draining", clock.now);
  await store.drains.begin(ID, WISH);
  await store.drains.begin(ID, { ...WISH, deadlineAt: clock.now + 1 });
  await note("drained", "drained");
  await store.drains.end(ID);
  await store.nodes.setWanted(ID, "ready", clock.now);
  await note("ready");
  await store.nodes.setWanted(ID, "standby", clock.now);
  clock.now += 100_000;
  expect(await store.nodes.lost()).toEqual([]);
  for (let round = 0; round < 2; round++) await store.nodes.lose(ID, 90_000);
  expect(await store.nodes.lost()).toEqual([ID]);
  await note("unreachable");
  await store.nodes.remove(ID);
  const before = ["ready", "cordoned", "draining", "drained", "ready", "standby", "lost", "removed"];
  expect(await kinds()).toEqual(before);
  // A new node of that name.
  await note("ready");
  expect(await kinds()).toEqual([...before, "ready"]);
});

test("events of orchestrators whose clocks differ are in the order in which they were added", async () => {
  const { store, clock, kinds } = await storeWithNode();
  const seen = (kind: NodeEventKind, clockAheadMs: number) =>
    store.nodeEvents.note([{ nodeId: ID, kind, at: clock.now + clockAheadMs }]);
  await seen("ready", 60_000);
  await seen("unreachable", 0);
  await seen("unreachable", 0);
  await seen("returned", -60_000);
  await seen("unreachable", 0);
  await store.nodes.setWanted(ID, "draining", clock.now);
  expect(await kinds()).toEqual(["ready", "unreachable", "returned", "unreachable", "cordoned"]);
  await seen("ready", 120_000);
  expect((await kinds()).at(-1)).toBe("ready");
});

test("the events of a node are kept for a time, and no more than some hundreds of them", async () => {
  const { store, clock, kinds, note } = await storeWithNode();
  for (let round = 0; round < 300; round++) await note("unreachable", "ready");
  clock.now += 10;
  await note("lost");
  await store.nodeEvents.forget(0);
  expect(await kinds()).toHaveLength(500);
  expect((await kinds()).at(-1)).toBe("lost");
  await store.nodeEvents.forget(clock.now);
  expect(await kinds()).toEqual(["lost"]);
});

test("a round of a drain that has ended sets nothing, whenever it had read that the drain goes on", async () => {
  const { store, clock } = await storeWithNode();
  const wanted = async () => (await store.nodes.standings()).map((standing) => standing.wanted);
  await store.drains.begin(ID, WISH);
  expect(await store.nodes.setWanted(ID, "draining", clock.now, "while drained")).toBe(true);
  expect(await wanted()).toEqual(["draining"]);
  await store.drains.end(ID);
  await store.nodes.setWanted(ID, "ready", clock.now);
  expect(await store.nodes.setWanted(ID, "draining", clock.now, "while drained")).toBe(false);
  expect(await wanted()).toEqual(["ready"]);
});
