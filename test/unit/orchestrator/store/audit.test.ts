/** The audit log in the database: an entry and its change are one transaction, and the chain shows what was tampered with. */

import { sql } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import type { NewEntry } from "../../../../orchestrator/store/audit/append.ts";
import { type AuditFilter, auditStore } from "../../../../orchestrator/store/audit/audit.ts";
import { breakAt, GENESIS, hashOf } from "../../../../orchestrator/store/audit/chain.ts";
import { type AuditScope, runAudited } from "../../../../orchestrator/store/audit/scope.ts";
import { createStore } from "../../../../orchestrator/store/store.ts";
import { openTestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const KEY = { name: "a key", scopes: ["read"], expiresAt: undefined, createdBy: "admin" } as const;

async function openStore() {
  const clock = { now: 1_000 };
  const opened = await openTestDatabase();
  onTestFinished(() => opened.close());
  const { database } = opened;
  const store = createStore(database, () => clock.now, testSeal);
  const all = { ascending: true, limit: 1000 };
  return {
    clock,
    database,
    store,
    entries: async () => (await store.audit.list({}, all)).rows,
    change: (statement: string) => sql.raw(statement).execute(database),
  };
}

function entry(action: string, more: Partial<NewEntry> = {}): NewEntry {
  return {
    at: 1,
    project_id: null,
    actor_kind: "admin",
    actor_id: null,
    actor_mask: null,
    action,
    object_kind: null,
    object_id: null,
    result: "done",
    status: null,
    error_code: null,
    address: null,
    request_id: null,
    refers_to: null,
    details: null,
    ...more,
  };
}

/** A request that owes one entry. */
function request(action: string, table?: string): AuditScope & { readonly written: number[] } {
  const written: number[] = [];
  const learned: { objectId?: string; projectId?: string } = {};
  return {
    written,
    underWay: true,
    get owes() {
      return written.length === 0;
    },
    table,
    learn: (facts) => Object.assign(learned, facts),
    entry: () => entry(action, { object_id: learned.objectId ?? null, project_id: learned.projectId ?? null }),
    wrote: (seq) => written.push(seq),
    part: () => expect.unreachable("these requests have no parts"),
  };
}

test("entries that are written while a request goes on are no change of it", async () => {
  const { store, entries } = await openStore();
  const scope = request("create", "sandboxes");
  await runAudited(scope, () => store.audit.addAll([entry("create", { object_id: "the end of a part" })]));
  expect(await entries()).toMatchObject([{ seq: 1, object_id: "the end of a part" }]);
  expect([scope.written, scope.owes]).toEqual([[], true]);
});

test("the first change of a request writes its entry, and later ones write none", async () => {
  const { store, entries } = await openStore();
  const scope = request("createProject", "projects");
  const project = await runAudited(scope, async () => {
    const made = await store.projects.create("one");
    await store.keys.create(made.id, KEY);
    return made;
  });
  expect(await entries()).toMatchObject([{ seq: 1, action: "createProject", object_id: project.id }]);
  expect(scope.written).toEqual([1]);
});

test("an entry names the project and the id of the row that the request adds", async () => {
  const { store, entries } = await openStore();
  const project = await store.projects.create("one");
  const { record } = await runAudited(request("createKey", "api_keys"), () => store.keys.create(project.id, KEY));
  await runAudited(request("create", "sandboxes"), () =>
    store.sandboxes.add(newSandbox({ id: "i1" }), { sandboxes: 10 }),
  );
  expect(await entries()).toMatchObject([{ object_id: record.id, project_id: project.id }, { object_id: "i1" }]);
});

test("work that no request audits, reads, and statements that change no row write no entry", async () => {
  const { store, entries } = await openStore();
  const project = await store.projects.create("one");
  const scope = request("renameKey");
  await runAudited(scope, async () => {
    await store.projects.list();
    expect(await store.keys.change(project.id, "no-such-key", { name: "new name" })).toBeUndefined();
  });
  expect(await entries()).toEqual([]);
  expect(scope.owes).toBe(true);
});

test("a change whose entry cannot be written is rolled back, in a transaction and without one", async () => {
  const { store, change } = await openStore();
  await change("alter table audit_log rename to elsewhere");
  const scope = request("createProject", "projects");
  await expect(runAudited(scope, () => store.projects.create("one"))).rejects.toThrow();
  const sandbox = newSandbox({ id: "i1", metadata: { a: "b" } });
  await expect(runAudited(request("create"), () => store.sandboxes.add(sandbox, { sandboxes: 10 }))).rejects.toThrow();
  await change("alter table elsewhere rename to audit_log");
  expect(await store.projects.list()).toEqual([]);
  expect(await store.sandboxes.get("i1")).toBeUndefined();
  expect(scope.owes).toBe(true);
});

test("a change that fails leaves no entry, and the request's next change writes it", async () => {
  const { store, database, entries } = await openStore();
  const scope = request("createProject", "projects");
  await runAudited(scope, async () => {
    const failing = database.transaction().execute(async (session) => {
      await session.insertInto("audit_anchor").values({ id: 1, seq: 0, hash: GENESIS.hash, at: 0 }).execute();
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    const again = sql`insert into nodes (id) values ('incomplete')`.execute(database);
    await expect(again).rejects.toThrow();
    expect(await entries()).toEqual([]);
    await store.projects.create("one");
  });
  expect(await entries()).toMatchObject([{ seq: 1, action: "createProject" }]);
});

test("a hundred changes at once give a chain without gaps", async () => {
  const { store, entries } = await openStore();
  const names = Array.from({ length: 100 }, (_, index) => `p${index}`);
  await Promise.all([
    ...names.map((name) => runAudited(request(name, "projects"), () => store.projects.create(name))),
    store.audit.addAll([entry("refused"), entry("refused")]),
  ]);
  const rows = await entries();
  expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: 102 }, (_, index) => index + 1));
  expect(new Set(rows.map(({ action }) => action))).toEqual(new Set([...names, "refused"]));
  const projects = await store.projects.list();
  for (const row of rows.filter(({ action }) => action !== "refused")) {
    expect(projects.find(({ id }) => id === row.object_id)?.name).toBe(row.action);
  }
  expect(await store.audit.check()).toMatchObject({ entries: 102, head: { seq: 102, hash: rows.at(-1)?.hash } });
});

test("times in the log never go back, also when the clock does", async () => {
  const { store, entries } = await openStore();
  await store.audit.addAll([entry("a", { at: 50 }), entry("b", { at: 20 }), entry("c", { at: 60 })]);
  expect((await entries()).map(({ at }) => at)).toEqual([50, 50, 60]);
});

test("the hash of an entry is SHA-256 of a list that an auditor can write down", () => {
  const row = { ...entry("kill", { object_id: "i1", at: 5 }), seq: 1, previous_hash: GENESIS.hash };
  expect(hashOf(row)).toMatch(/^[0-9a-f]{64}$/);
  expect(hashOf({ ...row, object_id: null, error_code: "i1" })).not.toBe(hashOf(row));
});

test("an entry of an earlier version fits its hash where PostgreSQL has another character in the place of its NUL", () => {
  const written = { ...entry("kill", { object_id: "i\0 1", error_code: "\0" }), seq: 1, previous_hash: GENESIS.hash };
  const hash = hashOf(written);
  expect(breakAt(GENESIS, { ...written, hash })).toBeUndefined();
  const stored = { ...written, object_id: "i\u{FFFD} 1", error_code: "\u{FFFD}", hash };
  expect(breakAt(GENESIS, stored)).toBeUndefined();
  for (const object_id of ["i 1", "i\u{FFFD} 2", "i\u{FFFD}\u{FFFD} 1"]) {
    expect(breakAt(GENESIS, { ...stored, object_id })).toEqual({ seq: 1, fault: "edited" });
  }
});

test.each([
  {
    tampering: "an edited entry",
    statement: "update audit_log set object_id = 'other' where seq = 3",
    seq: 3,
    fault: "edited",
  },
  {
    tampering: "an entry with a hash of its own",
    statement: "update audit_log set previous_hash = hash where seq = 3",
    seq: 3,
    fault: "edited",
  },
  { tampering: "a missing entry", statement: "delete from audit_log where seq = 3", seq: 3, fault: "missing" },
  { tampering: "a missing start", statement: "delete from audit_log where seq <= 2", seq: 1, fault: "missing" },
  {
    tampering: "two entries in each other's place",
    statement: "update audit_log set seq = case seq when 3 then -4 else -3 end where seq in (3, 4)",
    and: "update audit_log set seq = -seq where seq < 0",
    seq: 3,
    fault: "edited",
  },
  {
    tampering: "an end that was cut",
    statement: "delete from audit_log where seq > 4",
    seq: 5,
    fault: "missing",
    noted: true,
  },
])("the check finds $tampering", async ({ statement, and, seq, fault, noted }) => {
  const { store, entries, change } = await openStore();
  await store.audit.addAll(Array.from({ length: 6 }, (_, index) => entry(`a${index}`)));
  const last = (await entries()).at(-1);
  await change(statement);
  if (and !== undefined) await change(and);
  const known = noted === true && last !== undefined ? { known: { seq: last.seq, hash: last.hash } } : {};
  expect((await store.audit.check(known)).broken).toEqual({ seq, fault });
});

test("the check finds a log that was written anew by the hash that was noted elsewhere", async () => {
  const { store, entries, change } = await openStore();
  await store.audit.addAll([entry("a"), entry("b")]);
  const [first] = await entries();
  await change("delete from audit_log");
  await store.audit.addAll([entry("harmless"), entry("harmless"), entry("harmless")]);
  expect(await store.audit.check()).not.toHaveProperty("broken");
  const known = { seq: 1, hash: first?.hash ?? "" };
  expect((await store.audit.check({ known })).broken).toEqual({ seq: 1, fault: "replaced" });
});

test("retention deletes the oldest entries in bounded steps, and the rest of the chain still fits", async () => {
  const { store, entries } = await openStore();
  await store.audit.addAll(Array.from({ length: 10 }, (_, index) => entry(`a${index}`, { at: index * 10 })));
  const [, , third] = await entries();
  expect(await store.audit.forget(55, { limit: 3, now: 99 })).toBe(3);
  expect(await store.audit.check({ known: { seq: 3, hash: third?.hash ?? "" } })).toMatchObject({
    entries: 7,
    anchor: { seq: 3, hash: third?.hash },
  });
  expect(await store.audit.forget(55, { limit: 5, now: 99 })).toBe(3);
  expect(await store.audit.forget(1000, { limit: 50, now: 99 })).toBe(4);
  await store.audit.addAll([entry("next")]);
  expect(await entries()).toMatchObject([{ seq: 11, action: "next" }]);
  expect(await store.audit.check()).toMatchObject({ entries: 1, anchor: { seq: 10 }, head: { seq: 11 } });
});

test("a page continues where the one before ended, whatever is added or deleted meanwhile", async () => {
  const { store } = await openStore();
  await store.audit.addAll(Array.from({ length: 10 }, (_, index) => entry(`a${index}`, { at: index })));
  const first = await store.audit.list({}, { ascending: false, limit: 4 });
  expect(first.rows.map(({ seq }) => seq)).toEqual([10, 9, 8, 7]);
  await store.audit.addAll([entry("new", { at: 20 })]);
  const second = await store.audit.list({}, { ascending: false, limit: 4, after: first.next ?? 0 });
  expect(second.rows.map(({ seq }) => seq)).toEqual([6, 5, 4, 3]);
  await store.audit.forget(8, { limit: 100, now: 20 });
  expect(await store.audit.list({}, { ascending: false, limit: 4, after: second.next ?? 0 })).toEqual({ rows: [] });
});

test("a filter that few entries match reads a bounded number of entries for each page", async () => {
  const { database } = await openStore();
  const log = auditStore(database, 50);
  await log.addAll(Array.from({ length: 70 }, (_, index) => entry(index === 0 ? "rare" : "common", { at: index })));
  const first = await log.list({ action: "rare" }, { ascending: false, limit: 10 });
  expect(first).toEqual({ rows: [], next: 21 });
  const second = await log.list({ action: "rare" }, { ascending: false, limit: 10, after: 21 });
  expect(second.rows).toMatchObject([{ seq: 1 }]);
  expect(second.next).toBeUndefined();
  const bounded = await log.list({ from: 10, to: 14 }, { ascending: true, limit: 10 });
  expect(bounded.rows.map(({ at }) => at)).toEqual([10, 11, 12, 13, 14]);
});

test("filters are combined", async () => {
  const { store } = await openStore();
  await store.audit.addAll([
    entry("kill", { project_id: "p", object_id: "i1", actor_id: "k1", actor_kind: "key" }),
    entry("kill", { project_id: "p", object_id: "i2", actor_id: "k2", actor_kind: "key", request_id: "r" }),
    entry("kill", { project_id: "q", object_id: "i2", actor_id: "k2", actor_kind: "key", result: "refused" }),
    entry("pause", { project_id: "p", object_id: "i2", object_kind: "sandbox" }),
  ]);
  const found = async (filter: AuditFilter) =>
    (await store.audit.list(filter, { ascending: true, limit: 10 })).rows.map(({ seq }) => seq);
  expect(await found({ projectId: "p" })).toEqual([1, 2, 4]);
  expect(await found({ projectId: "p", action: "kill", actorId: "k2" })).toEqual([2]);
  expect(await found({ objectId: "i2", result: "refused" })).toEqual([3]);
  expect(await found({ actorKind: "admin", objectKind: "sandbox" })).toEqual([4]);
  expect(await found({ requestId: "r", objectId: "i1" })).toEqual([]);
});
