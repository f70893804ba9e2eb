/** Two orchestrators on one PostgreSQL database, each with memories of its own: what one changes, the other one knows. */

import { sql } from "kysely";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createIdentity } from "../../../../orchestrator/access/key-cache.ts";
import { createSeeds } from "../../../../orchestrator/base/keys/seeds.ts";
import { followRoutes } from "../../../../orchestrator/nodes/follow-routes.ts";
import { createRoutingTable } from "../../../../orchestrator/nodes/routing-table.ts";
import { CHANNEL, changeLog } from "../../../../orchestrator/store/changes/changes.ts";
import { createFeed } from "../../../../orchestrator/store/changes/feed.ts";
import type { OpenedDatabase } from "../../../../orchestrator/store/database.ts";
import { joinMembers } from "../../../../orchestrator/store/membership/membership.ts";
import { createStore, type Store } from "../../../../orchestrator/store/store.ts";
import { inTransaction } from "../../../../orchestrator/store/transactions.ts";
import { newSandboxId } from "../../../../shared/ids.ts";
import { createLog } from "../../../../shared/program/log.ts";
import type { TestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { openShared, type SharedDatabase } from "../../../support/store/shared-database.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });

let shared: SharedDatabase;
let database: TestDatabase;
let opened: readonly [OpenedDatabase, OpenedDatabase];
beforeAll(async () => {
  shared = await openShared();
  ({ database, opened } = shared);
}, 120_000);
afterAll(() => shared.close(), 60_000);

/** An orchestrator with its memory of keys and routes, which it forgets by itself only where it makes a change. */
async function orchestrator({ database: db, listen }: OpenedDatabase) {
  if (listen === undefined) throw new Error("the database is on no server");
  const given = { log, now: Date.now, version: "0", leaseMs: 600_000, onDifference: () => undefined };
  const members = await joinMembers(db, given);
  const store = createStore(db, Date.now, testSeal, { members });
  const changes = changeLog(db, () => members.self);
  const feed = await createFeed({ changes, log, listen: (told) => listen({ ...told, channel: CHANNEL, log }) });
  const read: string[] = [];
  const identity = createIdentity({
    keys: {
      findOwner: (hash) => {
        read.push(hash);
        return store.keys.findOwner(hash);
      },
    },
    uses: { note: () => undefined, flush: () => Promise.resolve() },
    now: Date.now,
    feed,
  });
  const place = () => ({ proxyUrl: "http://127.0.0.1:1", sameHost: false });
  const routes = createRoutingTable({ seeds: createSeeds("seed", []), place });
  followRoutes({ feed, routes, store: store.sandboxes });
  feed.start();
  onTestFinished(async () => {
    await feed.stop();
    await members.stop();
  });
  await expect.poll(() => feed.current).toBe(true);
  return { store, changes, feed, identity, routes, read };
}

const both = async () => [await orchestrator(opened[0]), await orchestrator(opened[1])] as const;

async function newKey(store: Store) {
  const project = await store.projects.create("keys");
  const made = { name: "k", scopes: ["read" as const], expiresAt: undefined, createdBy: "admin" };
  const { key, record } = await store.keys.create(project.id, made);
  return { project, key, id: record.id };
}

test("a key that one orchestrator revokes is unknown to the other one as soon as the revocation has ended", async () => {
  const [one, two] = await both();
  for (let round = 0; round < 20; round++) {
    const { project, key, id } = await newKey(one.store);
    expect(await two.identity.owner(key)).toMatchObject({ keyId: id });
    await one.store.keys.delete(project.id, id);
    expect(await two.identity.owner(key)).toBe("unknown");
  }
});

test("a project that one orchestrator disables is so for the other one as soon as the change has ended", async () => {
  const [one, two] = await both();
  const { project, key } = await newKey(one.store);
  await two.identity.owner(key);
  await one.store.projects.setStatus(project.id, "disabled", "unpaid");
  expect(await two.identity.owner(key)).toMatchObject({ project: { status: "disabled" } });
});

test("keys are remembered while changes are heard, and read each time while they are not", async () => {
  const [one, two] = await both();
  const { key } = await newKey(one.store);
  const readsOfThree = async () => {
    two.read.length = 0;
    for (let ask = 0; ask < 3; ask++) await two.identity.owner(key);
    return two.read.length;
  };
  // A busy machine may look for changes late, and then reads keys too.
  await expect.poll(readsOfThree).toBe(0);
  await two.feed.stop();
  expect(two.feed.current).toBe(false);
  expect(await readsOfThree()).toBe(3);
});

test("a revocation waits no longer than a few seconds for an orchestrator that reads no changes", async () => {
  const [one, two] = await both();
  const { project, key, id } = await newKey(one.store);
  await two.identity.owner(key);
  await two.feed.stop();
  await one.store.keys.delete(project.id, id);
  expect(await two.identity.owner(key)).toBe("unknown");
});

test("a change is read although its transaction began before, and ended after, one that was read", async () => {
  const [one, two] = await both();
  const seen: string[] = [];
  two.feed.on("node", (ids) => void seen.push(...(ids ?? [])));
  await inTransaction(opened[0].database, async (session) => {
    await one.changes.note(session, "node", "early");
    await inTransaction(opened[0].database, (other) => one.changes.note(other, "node", "late"));
    await expect.poll(() => seen).toEqual(["late"]);
    // A second look goes beyond the one that is under way still.
    await expect.poll(() => two.feed.current).toBe(true);
    await sql`select 1`.execute(session);
  });
  await expect.poll(() => seen).toEqual(["late", "early"]);
});

test("routes of one orchestrator's sandboxes are routes of the other one, until they pause or end", async () => {
  const [one, two] = await both();
  const project = await one.store.projects.create("routes");
  const id = newSandboxId();
  await one.store.sandboxes.add(newSandbox({ id, projectId: project.id, executionId: "e1" }), { sandboxes: 5 });
  await one.store.move({ id, to: "running", set: { address: "198.51.100.7" } });
  await expect.poll(() => two.routes.lookup(id)).toMatchObject({ executionId: "e1", address: "198.51.100.7" });
  await one.store.move({ id, to: "pausing" });
  await expect.poll(() => two.routes.lookup(id)).toBeUndefined();
  await one.store.move({ id, to: "paused", set: { snapshot: { id: "s1", memory: true } } });
  await two.store.move({ id, to: "starting", set: { executionId: "e2" } });
  await two.store.move({ id, to: "running", set: { address: "198.51.100.8" } });
  await expect.poll(() => one.routes.lookup(id)).toMatchObject({ executionId: "e2", address: "198.51.100.8" });
  await one.store.move({ id, to: "killing", set: { end: { reason: "request" } } });
  await expect.poll(() => two.routes.lookup(id)).toBeUndefined();
});

test("an orchestrator does not read its own changes, and old ones are forgotten", async () => {
  const [one, two] = await both();
  const own: string[] = [];
  one.feed.on("node", (ids) => void own.push(...(ids ?? [])));
  const others: string[] = [];
  two.feed.on("node", (ids) => void others.push(...(ids ?? [])));
  await inTransaction(opened[0].database, (session) => one.changes.note(session, "node", "mine"));
  await expect.poll(() => others).toEqual(["mine"]);
  expect(own).toEqual([]);
  await database.query("update changes set at = 0");
  await one.changes.forget();
  expect(await database.query("select * from changes")).toEqual([]);
});
