/** Two orchestrators on one PostgreSQL database, and sandboxes whose end has passed: each is ended by one of them. */

import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { startExpiry } from "../../../../orchestrator/lifecycle/ending/expiry.ts";
import type { Nodes } from "../../../../orchestrator/nodes/nodes.ts";
import { joinMembers } from "../../../../orchestrator/store/membership/membership.ts";
import { createStore, type Store } from "../../../../orchestrator/store/store.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { lifecycleCore } from "../../../support/fakes/lifecycle-core.ts";
import type { TestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { openShared, type SharedDatabase } from "../../../support/store/shared-database.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });
/** Ends are long past for it. */
const NOW = 1_000_000;

let shared: SharedDatabase;
let database: TestDatabase;
let opened: SharedDatabase["opened"];
let stores: readonly Store[];
beforeAll(async () => {
  shared = await openShared();
  ({ database, opened } = shared);
}, 120_000);
afterAll(() => shared.close(), 60_000);

beforeEach(async () => {
  await database.query("delete from sandboxes");
  stores = await Promise.all(
    opened.map(async ({ database: db }) => {
      const given = { log, now: Date.now, version: "0", leaseMs: 600_000, onDifference: () => undefined };
      const members = await joinMembers(db, given);
      onTestFinished(() => members.stop());
      return createStore(db, () => NOW, testSeal, { members });
    }),
  );
});

async function run(ids: readonly string[]): Promise<void> {
  const [store] = stores as [Store];
  const project = await store.projects.create("expired");
  for (const [index, id] of ids.entries()) {
    const sandbox = newSandbox({ id, executionId: `e-${id}`, projectId: project.id, endAt: index + 1 });
    await store.sandboxes.add(sandbox, { sandboxes: 1_000 });
    await store.move({ id, to: "running", set: { address: "127.0.0.1" } });
  }
}

async function found(by: number, free = 10): Promise<string[]> {
  const records = await stores[by]?.sandboxes.expired({ now: NOW, free, known: 0 });
  return (records ?? []).map(({ id }) => id);
}

test("of two orchestrators that look at the same time each sandbox is found by one, and no more than it can end", async () => {
  const ids = Array.from({ length: 30 }, (_, index) => `i${index}`);
  await run(ids);
  const all: string[] = [];
  for (let round = 0; round < 4; round++) {
    const both = await Promise.all([found(0, 5), found(1, 5)]);
    for (const some of both) {
      expect(some.length).toBeLessThanOrEqual(5);
      all.push(...some);
    }
  }
  expect(all.toSorted()).toEqual(ids.toSorted());
  expect([await found(0), await found(1)]).toEqual([[], []]);
});

test("a sandbox that its finder did not end is found by another one when the claim has lapsed", async () => {
  await run(["i1"]);
  expect(await found(0)).toEqual(["i1"]);
  expect(await found(1)).toEqual([]);
  await database.query("update sandboxes set expiring_until = 0");
  expect(await found(1)).toEqual(["i1"]);
});

test("a sandbox whose end was moved meanwhile is found at its new end, whoever found it at the old one", async () => {
  await run(["i1"]);
  expect(await found(0)).toEqual(["i1"]);
  await stores[0]?.setEnd("i1", { at: NOW + 1, extendOnly: false });
  expect(await found(1)).toEqual([]);
  await stores[0]?.setEnd("i1", { at: NOW, extendOnly: false });
  expect(await found(1)).toEqual(["i1"]);
});

test("the expiries of two orchestrators begin to end each sandbox once, while one of them takes long for each", async () => {
  const ids = Array.from({ length: 40 }, (_, index) => `i${index}`);
  await run(ids);
  const ended: string[] = [];
  const nodes = { mayChange: () => true } as unknown as Nodes;
  const held: (() => void)[] = [];
  for (const [by, store] of stores.entries()) {
    const core = lifecycleCore({ store, nodes, now: () => NOW });
    const expiry = startExpiry({
      core,
      everyMs: 5,
      concurrency: 4,
      observe: () => undefined,
      expire({ id }) {
        ended.push(id);
        // The second one ends what it finds; the first one is held up with its four.
        return by === 0
          ? new Promise<void>((resolve) => held.push(resolve))
          : store.move({ id, to: "gone", set: { end: { reason: "timeout" } } });
      },
    });
    onTestFinished(async () => {
      for (const go of held) go();
      await expiry.stop();
    });
  }
  await expect.poll(() => ended.length).toBe(ids.length);
  expect(ended.toSorted()).toEqual(ids.toSorted());
});
