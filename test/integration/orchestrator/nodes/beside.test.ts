/** Two orchestrators on one PostgreSQL database know of a node what either of them has heard, by the database's clock. */

import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createBackground } from "../../../../orchestrator/base/background.ts";
import { createNodeKeys } from "../../../../orchestrator/base/keys/node-keys.ts";
import { hearOthers } from "../../../../orchestrator/nodes/hear-others.ts";
import { createNodes } from "../../../../orchestrator/nodes/nodes.ts";
import { allStarts, shareStarts } from "../../../../orchestrator/nodes/telling/starts.ts";
import { createStatusEvents } from "../../../../orchestrator/nodes/telling/status-events.ts";
import { noSuspicions } from "../../../../orchestrator/repairs/reconcile.ts";
import { createSuspicionMemory } from "../../../../orchestrator/repairs/suspicions.ts";
import { CHANNEL, changeLog } from "../../../../orchestrator/store/changes/changes.ts";
import { createFeed } from "../../../../orchestrator/store/changes/feed.ts";
import type { OpenedDatabase } from "../../../../orchestrator/store/database.ts";
import { createLineage } from "../../../../orchestrator/store/lineage.ts";
import { joinMembers } from "../../../../orchestrator/store/membership/membership.ts";
import { createStore } from "../../../../orchestrator/store/store.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { fakeHeartbeat } from "../../../support/fakes/fake-heartbeat.ts";
import type { TestDatabase } from "../../../support/store/databases.ts";
import { sandboxRecord } from "../../../support/store/sandbox-records.ts";
import { openShared, type SharedDatabase } from "../../../support/store/shared-database.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });
const WAIT = { timeout: 30_000 };

let shared: SharedDatabase;
let database: TestDatabase;
let opened: readonly [OpenedDatabase, OpenedDatabase];
beforeAll(async () => {
  shared = await openShared();
  ({ database, opened } = shared);
}, 120_000);
afterAll(() => shared.close(), 60_000);

/** @param aheadMs what this machine's clock is ahead, which nobody has noticed yet */
async function orchestrator({ database: db, listen }: OpenedDatabase, aheadMs = 0) {
  if (listen === undefined) throw new Error("the database is on no server");
  const now = () => Date.now() + aheadMs;
  const given = { log, now: Date.now, version: "0", leaseMs: 600_000, onDifference: () => undefined };
  const members = await joinMembers(db, given);
  const store = createStore(db, now, testSeal, { members });
  const changes = changeLog(db, () => members.self);
  const feed = await createFeed({ changes, log, listen: (told) => listen({ ...told, channel: CHANNEL, log }) });
  const lineage = await createLineage(db, { now, sqlite: false, memberId: members.id });
  const background = createBackground(log);
  const nodes = await createNodes({
    store: store.nodes,
    alone: false,
    now,
    log,
    nodeKeys: createNodeKeys("test-node-key-0001", []),
    lineage,
    meeting: () => undefined,
    nodeTimeoutMs: 20_000,
    nodeLostMs: 90_000,
    background,
    machineId: undefined,
    onStatus: createStatusEvents({ store: store.nodeEvents, background }),
  });
  const telling = shareStarts({ nodes, store: store.nodeStarts, log, everyMs: 50 });
  const hearing = hearOthers({ nodes, routes: { refreshNode: () => undefined }, feed, alone: false, log });
  feed.start();
  onTestFinished(async () => {
    await hearing.stop();
    await telling.stop();
    await background.settled();
    await feed.stop();
    await nodes.stop();
    await members.stop();
  });
  return { nodes, store, lineage, members };
}

function report(nodeId: string, serviceInstanceId = "run-1") {
  const url = "http://127.0.0.1:1";
  return fakeHeartbeat({ nodeId, url, serviceInstanceId, address: "127.0.0.1", options: {}, live: [], snapshots: [] });
}

test("a node that reports to one is ready at the other, which hears of its refusal, its status and its removal", async () => {
  const [first, second] = [await orchestrator(opened[0]), await orchestrator(opened[1])];
  const seen = () => second.nodes.get("n1");
  await first.nodes.heard(report("n1"));
  await expect.poll(() => seen()?.status, WAIT).toBe("ready");
  await second.nodes.setWanted("n1", "draining");
  // The answer waits until every orchestrator knows it.
  expect(first.nodes.get("n1")?.status).toBe("draining");
  await first.nodes.setWanted("n1", "ready");
  expect(seen()?.status).toBe("ready");
  await first.nodes.heard(report("n1"), "it serves another database");
  await expect.poll(() => second.nodes.refused("n1"), WAIT).toBe("it serves another database");
  await first.nodes.remove("n1");
  await first.store.nodes.remove("n1");
  await expect.poll(seen, WAIT).toBeUndefined();
});

test("what happened to a node is told once, whoever has seen it, and starts of both are added up until one of them leaves", async () => {
  const [first, second] = [await orchestrator(opened[0]), await orchestrator(opened[1])];
  await first.nodes.heard(report("n5"));
  await expect.poll(() => second.nodes.get("n5")?.status, WAIT).toBe("ready");
  await second.nodes.setWanted("n5", "draining");
  await first.nodes.setWanted("n5", "ready");
  const kinds = async () => (await second.store.nodeEvents.newest("n5", 9)).map(({ kind }) => kind).toReversed();
  await expect.poll(kinds, WAIT).toEqual(["ready", "cordoned", "ready"]);
  const resources = { cpuCount: 1, memoryMB: 1, diskSizeMB: 1 };
  for (const { nodes } of [first, second])
    nodes.placing("n5", resources)({ failed: new AppError("internal", "no such device") });
  first.nodes.placing("n5", resources)("started");
  const told = async ({ nodes, store }: typeof first) => {
    const view = nodes.get("n5");
    return view === undefined ? undefined : allStarts(view, (await store.nodeStarts.ofOthers()).get("n5"));
  };
  const error = expect.objectContaining({ code: "internal", message: "no such device" }) as unknown;
  for (const each of [first, second])
    await expect.poll(() => told(each), WAIT).toEqual({ succeeded: 1, failed: 2, errors: [error, error] });
  await second.members.stop();
  expect(await told(first)).toEqual({ succeeded: 1, failed: 1, errors: [error] });
});

test("whether a node is silent is decided by the database's clock, whatever the clock of the orchestrator says", async () => {
  const first = await orchestrator(opened[0]);
  const late = await orchestrator(opened[1], 600_000);
  await first.nodes.heard(report("n2"));
  expect(await late.store.nodes.silentFor(90_000)).toEqual([]);
  await late.nodes.heard(report("n2", "run-2"));
  const [row] = await database.query("select last_heartbeat_at as at from nodes where id = ?", "n2");
  expect(Math.abs(Number(row?.["at"]) - Date.now())).toBeLessThan(60_000);
  await database.query("update nodes set last_heartbeat_at = last_heartbeat_at - 100000 where id = ?", "n2");
  expect(await first.store.nodes.silentFor(90_000)).toEqual(["n2"]);
});

test("a report in which nothing has changed is not written each time", async () => {
  const { nodes } = await orchestrator(opened[0]);
  const writtenAt = async () =>
    (await database.query("select last_heartbeat_at as at from nodes where id = ?", "n3"))[0]?.["at"];
  await nodes.heard(report("n3"));
  let sentAt = Date.now();
  // After some seconds it is written all the same, and a busy machine may let them pass between two reports.
  const isLeftOut = async () => {
    const before = await writtenAt();
    await nodes.heard({ ...report("n3"), load: { ...report("n3").load, at: ++sentAt } });
    return (await writtenAt()) === before;
  };
  await expect.poll(isLeftOut, WAIT).toBe(true);
  const first = await writtenAt();
  await nodes.heard({ ...report("n3"), load: { ...report("n3").load, sandboxCount: 1 } });
  expect(await writtenAt()).not.toBe(first);
});

test("each orchestrator names the others to nodes, until they leave", async () => {
  const [first, second] = [await orchestrator(opened[0]), await orchestrator(opened[1])];
  expect(await first.lineage.beside()).toEqual([second.lineage.now().opening]);
  await second.members.stop();
  expect(await first.lineage.beside()).toEqual([]);
});

test("a difference that one has seen and a report to the other does not have is gone for both", async () => {
  const stores = [await orchestrator(opened[0]), await orchestrator(opened[1])].map(({ store }) => store);
  await stores[0]?.nodes.report(report("n4").node, report("n4").load, {
    keyId: undefined,
    refusal: undefined,
    news: false,
  });
  const [one, two] = stores.map((store) => createSuspicionMemory({ store: store.nodes, alone: false, own: new Map() }));
  const missing = { ...noSuspicions, missing: new Map([["e", 5]]) };
  await one?.keep("n4", missing, noSuspicions);
  expect(await two?.of("n4")).toEqual(missing);
  await two?.keep("n4", noSuspicions, missing);
  expect(await one?.of("n4")).toEqual(noSuspicions);
});

test("a hold that both hear of is one event, and so is what was given up", async () => {
  const [first, second] = [await orchestrator(opened[0]), await orchestrator(opened[1])];
  const record = sandboxRecord({ id: "held-by-two", projectId: "p-held" });
  const both = <T>(work: (store: typeof first.store) => Promise<T>) =>
    Promise.all([work(first.store), work(second.store)]);
  expect((await both((store) => store.setHeld(record, true))).filter(Boolean)).toHaveLength(1);
  expect((await both((store) => store.setHeld(record, false))).filter(Boolean)).toHaveLength(1);
  const object = { kind: "snapshot", id: "s1" };
  await both((store) => store.noteHeld({ nodeId: "n1", object, id: "s1", record }));
  const events = await first.store.events.read("p-held", {}, { limit: 10, ascending: true });
  expect(events.map(({ type }) => type.split(".").at(-1))).toEqual(["held", "released", "snapshot_held"]);
});
