/** Two processes with several connections each, on one PostgreSQL database: what one alone may decide is decided once. */

import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createStore, type Store } from "../../../../orchestrator/store/store.ts";
import { afterCommit, inTransaction } from "../../../../orchestrator/store/transactions.ts";
import { newSandbox, sandboxRecord } from "../../../support/store/sandbox-records.ts";
import { openShared, type SharedDatabase } from "../../../support/store/shared-database.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const AT_ONCE = 24;

let shared: SharedDatabase;
let stores: readonly [Store, Store];
beforeAll(async () => {
  shared = await openShared();
  const [one, two] = shared.opened;
  stores = [createStore(one.database, Date.now, testSeal), createStore(two.database, Date.now, testSeal)];
}, 120_000);
afterAll(() => shared.close(), 60_000);

/** Calls `work` of both processes in turn, all at once. */
function all<T>(work: (store: Store, index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(
    Array.from({ length: AT_ONCE }, (_, index) => work(index % 2 === 0 ? stores[0] : stores[1], index)),
  );
}

test("starts at the same time do not exceed the limit of a project", async () => {
  const project = await stores[0].projects.create("starts");
  const started = await all((store, index) =>
    store.sandboxes.add(newSandbox({ id: `istart${index}`, projectId: project.id }), { sandboxes: 5 }),
  );
  expect(started.filter(Boolean)).toHaveLength(5);
});

test("resumes at the same time do not exceed the limit of a project", async () => {
  const project = await stores[0].projects.create("resumes");
  const ids = Array.from({ length: AT_ONCE }, (_, index) => `iresume${index}`);
  for (const id of ids) {
    await stores[0].sandboxes.add(newSandbox({ id, projectId: project.id }), { sandboxes: AT_ONCE });
    await stores[0].move({ id, to: "paused" });
  }
  const resumed = await all((store, index) =>
    store.move({ id: ids[index] ?? "", to: "starting", when: { limit: { sandboxes: 3 } } }),
  );
  expect(resumed.filter((record) => record !== undefined)).toHaveLength(3);
});

test("webhooks that are added at the same time do not exceed their limit", async () => {
  const added = await all((store, index) =>
    store.webhooks.add(
      { projectId: "hooks", name: `n${index}`, url: "https://198.51.100.1/", events: [], enabled: true, secret: "s" },
      4,
    ),
  );
  expect(added.filter((webhook) => webhook !== undefined)).toHaveLength(4);
});

test("entries of the audit log that both append have one chain without gaps", async () => {
  const object = { kind: "platform", id: "p" };
  const before = (await stores[0].audit.head()).seq;
  await all((store, index) =>
    inTransaction(shared.opened[index % 2]?.database ?? expect.fail(), (session) =>
      store.audit.note(session, { at: index, action: "rotate", object, projectId: undefined }),
    ),
  );
  const checked = await stores[1].audit.check();
  expect(checked).toMatchObject({ head: { seq: before + AT_ONCE } });
  expect(checked.broken).toBeUndefined();
});

test("the audit log stays whole while both delete its oldest entries", async () => {
  const kept = (await stores[0].audit.head()).seq;
  await all((store) => store.audit.forget(Number.MAX_SAFE_INTEGER, { limit: 3, now: 5 }));
  const checked = await stores[1].audit.check();
  expect(checked.broken).toBeUndefined();
  expect(checked.head.seq).toBe(kept);
});

test("both make one default workspace, and one base template", async () => {
  const image = { image: "base", cpuCount: 1, memoryMB: 128, diskSizeMB: 0, envdVersion: "0" };
  await all((store) => store.workspaces.seed());
  const builds = await all((store) => store.templates.seed("base", image));
  expect(new Set(builds.map(({ id }) => id)).size).toBe(1);
  expect((await stores[0].workspaces.list()).filter(({ isDefault }) => isDefault)).toHaveLength(1);
});

test("events have one order, and a listener that is called finds its event", async () => {
  const { id: projectId } = await stores[0].projects.create("events");
  const found: Promise<number>[] = [];
  const stop = stores.map((store) =>
    store.events.onAdded(
      (of) =>
        of === projectId &&
        void found.push(
          store.events.read(projectId, {}, { limit: AT_ONCE, ascending: true }).then((all) => all.length),
        ),
    ),
  );
  await all((store, index) => store.addEvent(sandboxRecord({ id: `ievent${index}`, projectId }), { type: "updated" }));
  for (const end of stop) end();
  const events = await stores[0].events.read(projectId, {}, { limit: AT_ONCE, ascending: true });
  expect(new Set(events.map(({ sequence }) => sequence)).size).toBe(AT_ONCE);
  // The call after the n-th commit finds n events or more.
  const counts = (await Promise.all(found)).sort((a, b) => a - b);
  expect(counts).toHaveLength(AT_ONCE);
  for (const [index, count] of counts.entries()) expect(count).toBeGreaterThan(index);
});

test("of two transactions that wait for each other one runs again, and what follows a commit happens once", async () => {
  const ids = ["lock-a", "lock-b"];
  for (const id of ids) await stores[0].workspaces.create(id);
  const both = { reached: 0, go: () => undefined as void };
  const met = new Promise<void>((resolve) => {
    both.go = resolve;
  });
  const runs = [0, 0];
  const followed: number[] = [];
  await Promise.all(
    shared.opened.map(({ database: db }, index) =>
      inTransaction(db, async (session) => {
        runs[index] = (runs[index] ?? 0) + 1;
        afterCommit(session, () => void followed.push(index));
        const order = index === 0 ? ids : [...ids].reverse();
        for (const name of order) {
          await sql`update workspaces set name = name where name = ${name}`.execute(session);
          both.reached++;
          if (both.reached === 2) both.go();
          await met;
        }
      }),
    ),
  );
  expect((runs[0] ?? 0) + (runs[1] ?? 0)).toBeGreaterThan(2);
  expect(followed.toSorted((one, other) => one - other)).toEqual([0, 1]);
});

test("a transaction in which a statement has failed cannot be committed by mistake", async () => {
  const [one] = shared.opened;
  const made = inTransaction(one?.database ?? expect.fail(), async (session) => {
    await sql`insert into workspaces (id, name, is_default, created_at) values ('w', 'mistake', 0, 5)`.execute(session);
    await sql`select 1 / 0`.execute(session).catch(() => undefined);
  });
  await expect(made).rejects.toThrow("rolled a transaction back");
  expect((await stores[0].workspaces.list()).map(({ name }) => name)).not.toContain("mistake");
  // The connections are as good as before.
  await all((store) => store.workspaces.list());
});
