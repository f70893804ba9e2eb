/** Two orchestrators on one PostgreSQL database, and one sandbox: who may move it, and who may not any more. */

import { sql } from "kysely";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createTransitions } from "../../../../orchestrator/lifecycle/transitions.ts";
import type { OpenedDatabase } from "../../../../orchestrator/store/database.ts";
import { joinMembers } from "../../../../orchestrator/store/membership/membership.ts";
import { UnderWay } from "../../../../orchestrator/store/operations/record.ts";
import { createStore, type Store } from "../../../../orchestrator/store/store.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { newSandboxId } from "../../../../shared/ids.ts";
import { createLog } from "../../../../shared/program/log.ts";
import type { TestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { openShared, type SharedDatabase } from "../../../support/store/shared-database.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });
const LONG_MS = 600_000;

let shared: SharedDatabase;
let database: TestDatabase;
let opened: readonly [OpenedDatabase, OpenedDatabase];
beforeAll(async () => {
  shared = await openShared();
  ({ database, opened } = shared);
}, 120_000);
afterAll(() => shared.close(), 60_000);

interface World {
  readonly id: string;
  readonly first: Store;
  readonly second: Store;
  /** The first one is no member any more, and does not know it yet. */
  readonly lapse: () => Promise<void>;
}

/** A sandbox that runs, and two orchestrators. */
async function world(): Promise<World> {
  const id = newSandboxId();
  const stores: Store[] = [];
  const ids: (string | undefined)[] = [];
  for (const { database: db } of opened) {
    const given = { log, now: Date.now, version: "0", leaseMs: LONG_MS, onDifference: () => undefined };
    const members = await joinMembers(db, given);
    onTestFinished(() => members.stop());
    stores.push(createStore(db, Date.now, testSeal, { members }));
    ids.push(members.self?.id);
  }
  const [first, second] = stores as [Store, Store];
  const project = await first.projects.create("operations");
  await first.sandboxes.add(newSandbox({ id, projectId: project.id }), { sandboxes: 5 });
  await first.move({ id, to: "running", set: { address: "127.0.0.1" } });
  const lapse = async () => {
    await sql`update orchestrators set expires_at = 0 where id = ${ids[0]}`.execute(opened[0].database);
  };
  return { id, first, second, lapse };
}

const stateOf = async ({ id, second }: World) => (await second.sandboxes.get(id))?.state;

test("while one orchestrator pauses a sandbox, another one can neither kill nor finish it, and can afterwards", async () => {
  const w = await world();
  const { id, first, second } = w;
  await first.move({ id, to: "pausing" });
  await expect(second.move({ id, to: "killing", set: { end: { reason: "request" } } })).rejects.toThrow(UnderWay);
  await expect(second.operations.take(id, "paused", ["pausing"])).rejects.toThrow(UnderWay);
  expect(await second.move({ id, to: "paused" })).toBeUndefined();
  expect(await stateOf(w)).toBe("pausing");
  expect(await first.move({ id, to: "paused" })).toMatchObject({ state: "paused" });
  expect(await second.move({ id, to: "killing", set: { end: { reason: "request" } } })).toMatchObject({
    state: "killing",
  });
});

test("what a lapsed orchestrator began is another one's, and its late moves change nothing", async () => {
  const w = await world();
  const { id, first, second, lapse } = w;
  await first.move({ id, to: "pausing" });
  expect(await second.operations.elsewhere(id)).toMatchObject({ aim: "paused" });
  await lapse();
  expect(await second.operations.elsewhere(id)).toBeUndefined();
  await second.operations.take(id, "paused", ["pausing"]);
  expect(await first.move({ id, to: "running" })).toBeUndefined();
  expect(await stateOf(w)).toBe("pausing");
  expect(await second.move({ id, to: "paused" })).toMatchObject({ state: "paused" });
});

test("transitions of a living orchestrator are not abandoned, and those of a lapsed one are at once", async () => {
  const { id, first, second, lapse } = await world();
  await first.move({ id, to: "pausing", set: { deadlineAt: 5 } });
  const stuck = async () => (await second.sandboxes.stuck(Date.now(), 1_000)).map((record) => record.id);
  await second.sandboxes.abandonAll();
  expect(await stuck()).not.toContain(id);
  // Its own it finds when their time has passed.
  expect((await first.sandboxes.stuck(Date.now(), 1_000)).map((record) => record.id)).toContain(id);
  await opened[0].database
    .updateTable("sandboxes")
    .set({ deadline_at: Date.now() + LONG_MS })
    .where("id", "=", id)
    .execute();
  await lapse();
  expect(await stuck()).not.toContain(id);
  await second.operations.abandonLapsed();
  expect(await stuck()).toContain(id);
});

test("a kill overtakes a resume of another orchestrator, whose end is lost then", async () => {
  const w = await world();
  const { id, first, second } = w;
  await first.move({ id, to: "pausing" });
  await first.move({ id, to: "paused", set: { snapshot: { id: "s1", memory: true } } });
  await first.move({ id, to: "starting" });
  expect(await second.move({ id, to: "killing", set: { end: { reason: "request" } } })).toMatchObject({
    state: "killing",
  });
  expect(await first.move({ id, to: "running" })).toBeUndefined();
  expect(await second.move({ id, to: "gone" })).toMatchObject({ state: "gone" });
  expect(await database.query("select * from operations where sandbox_id = ?", id)).toEqual([]);
});

test("a caller at another orchestrator shares the failure of the same aim, and waits for another aim", async () => {
  const w = await world();
  const { id, first, second } = w;
  await first.move({ id, to: "pausing" });
  let looks = 0;
  const elsewhere = async (sandboxId: string) => {
    const found = await second.operations.elsewhere(sandboxId);
    looks++;
    return found;
  };
  const transitions = createTransitions({ ...second.operations, elsewhere });
  const order: string[] = [];
  const joined = transitions.perform({
    sandboxId: id,
    aim: "paused",
    waitMs: 60_000,
    work: () => Promise.reject(new Error("it joined another one")),
  });
  const told = joined.catch((error: unknown) => error as AppError);
  // It has found the other orchestrator's operation, which ends below.
  await expect.poll(() => looks).toBeGreaterThan(0);
  expect(transitions.current(id)).toBe("paused");
  const waiting = transitions.perform({
    sandboxId: id,
    aim: "snapshotting",
    waitMs: 60_000,
    work: async () => void order.push((await second.sandboxes.get(id))?.state ?? ""),
  });
  const refused = new AppError("snapshot_failed", "there is no room on the node");
  await first.move({ id, to: "running", failure: refused });
  expect(await told).toMatchObject({ code: "snapshot_failed", message: refused.message });
  await waiting;
  expect(order).toEqual(["running"]);
});

test("an operation whose outcome is unknown is taken over while its orchestrator lives", async () => {
  const { id, first, second } = await world();
  await first.move({ id, to: "pausing" });
  const silent = new AppError("node_unreachable", "the node does not answer");
  const failing = createTransitions(first.operations).perform({
    sandboxId: id,
    aim: "paused",
    waitMs: 60_000,
    work: () => Promise.reject(silent),
  });
  await expect(failing).rejects.toBe(silent);
  await second.operations.take(id, "paused", ["pausing"]);
  expect(await second.move({ id, to: "paused" })).toMatchObject({ state: "paused" });
});

test("a network change of another orchestrator holds off a pause, and not a kill", async () => {
  const { id, first, second } = await world();
  const seen = await first.sandboxes.get(id);
  if (seen === undefined) throw new Error("the sandbox is missing");
  const begun = await first.networks.begin(seen, "sealed");
  await expect(second.move({ id, to: "pausing" })).rejects.toThrow(UnderWay);
  if (begun === undefined) throw new Error("the change has not begun");
  await first.networks.replaceChange(begun, null);
  expect(await second.move({ id, to: "pausing" })).toMatchObject({ state: "pausing" });
  await second.move({ id, to: "running" });
  const again = await first.networks.begin({ ...seen, networkVersion: begun.networkVersion }, "sealed");
  expect(again).toBeDefined();
  expect(await second.move({ id, to: "killing", set: { end: { reason: "request" } } })).toMatchObject({
    state: "killing",
  });
});
