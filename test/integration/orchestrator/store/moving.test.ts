/** Records of a SQLite file in a PostgreSQL database: all of them or none, and from nowhere but a file that nobody uses. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../../../orchestrator/store/database.ts";
import { createLineage } from "../../../../orchestrator/store/lineage.ts";
import { moveToPostgres } from "../../../../orchestrator/store/moving/move.ts";
import { createStore } from "../../../../orchestrator/store/store.ts";
import { type PostgresServer, startPostgres } from "../../../support/postgres/cluster.ts";
import { newDatabase, newMigratedDatabase, type TestDatabase } from "../../../support/store/databases.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
}, 90_000);
afterAll(() => server.stop(), 60_000);

const NOW = 1_790_000_000_123;
const SLOW = { timeout: 60_000 };

/** A file with records of several tables: keys, a block of usage in bytes, more rows than one statement takes, an audit log. */
async function filledFile(): Promise<TestDatabase> {
  const folder = mkdtempSync(join(tmpdir(), "svc-move-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = await newMigratedDatabase({ folder, server: null });
  const opened = await openDatabase(file.place);
  await createLineage(opened.database, { now: () => NOW, sqlite: true });
  const store = createStore(opened.database, () => NOW, testSeal);
  const project = await store.projects.create("moved");
  const entry = { at: NOW, action: "endSandbox", projectId: project.id, object: { kind: "sandbox", id: "i1" } };
  await opened.database.transaction().execute(async (session) => {
    for (let seq = 0; seq < 3; seq++) await store.audit.note(session, { ...entry, details: { reason: "tést" } });
  });
  await opened.close();
  await file.query("insert into usage_projects values (?, 7)", project.id);
  await file.query("insert into usage_blocks values (7, 60, 5, ?)", Buffer.from([0, 1, 255]));
  await file.query(
    `with recursive n(i) as (select 1 union all select i + 1 from n where i < 1234)
     insert into usage_marks select 'mark ' || i, i from n`,
  );
  return file;
}

async function emptyTarget(): Promise<TestDatabase> {
  const target = await newDatabase({ server: server.url });
  onTestFinished(() => target.drop());
  return target;
}

/** The columns of a row in one order: each kind of database has its own. */
function text(row: Record<string, unknown>): string {
  const names = Object.keys(row).sort((one, other) => one.localeCompare(other));
  return names.map((name) => `${name}=${String(row[name])}`).join("\n");
}

test("all records arrive as they were, a second run says so, and the file stays", SLOW, async () => {
  const [file, target] = [await filledFile(), await emptyTarget()];
  const first = await moveToPostgres(file.place, target.place);
  expect(first).toMatchObject({ moved: true, audit: { entries: 3, head: { seq: 3 } } });
  expect(first.audit.broken).toBeUndefined();
  expect(first.counts).toMatchObject({ usage_marks: 1234, projects: 1, store_identity: 1, audit_log: 3, sandboxes: 0 });
  for (const table of ["projects", "audit_log", "store_identity", "store_openings", "usage_blocks", "usage_marks"]) {
    const rows = (list: Record<string, unknown>[]) => new Set(list.map((row) => text(row)));
    expect(rows(await target.query(`select * from ${table}`))).toEqual(
      rows(await file.query(`select * from ${table}`)),
    );
  }
  expect(await target.query("select samples from usage_blocks")).toEqual([{ samples: Buffer.from([0, 1, 255]) }]);

  expect(await moveToPostgres(file.place, target.place)).toEqual({ ...first, moved: false });
  await target.query("delete from usage_marks where value = 1");
  await expect(moveToPostgres(file.place, target.place)).rejects.toThrow(
    /others than the SQLite file: usage_marks: 1234 in SQLite, 1233 in PostgreSQL/,
  );
});

test("an orchestrator goes on where the one on the file was", SLOW, async () => {
  const [file, target] = [await filledFile(), await emptyTarget()];
  const { storeId } = await moveToPostgres(file.place, target.place);
  const opened = await openDatabase(target.place);
  onTestFinished(() => opened.close());
  const lineage = await createLineage(opened.database, { now: () => NOW, sqlite: false });
  expect(lineage.now().storeId).toBe(storeId);
  const store = createStore(opened.database, () => NOW + 1, testSeal);
  const object = { kind: "sandbox", id: "i2" };
  await opened.database.transaction().execute(async (session) => {
    await store.audit.note(session, { at: NOW + 1, action: "endSandbox", projectId: undefined, object });
  });
  expect(await store.audit.check()).toMatchObject({ entries: 4, head: { seq: 4 } });
});

test("a file that an orchestrator has open is refused, and nobody opens it during the move", SLOW, async () => {
  const [file, target] = [await filledFile(), await emptyTarget()];
  const opened = await openDatabase(file.place);
  await opened.ping();
  await expect(moveToPostgres(file.place, target.place)).rejects.toThrow(/has '.*' open: stop it first/);
  await opened.close();
  expect(await target.query("select tablename from pg_tables where schemaname = 'public'")).toEqual([]);
  expect((await moveToPostgres(file.place, target.place)).moved).toBe(true);
});

test("a target with records of anything else is refused, and stays as it is", SLOW, async () => {
  const [file, target] = [await filledFile(), await emptyTarget()];
  await target.query("create table invoices (id integer)");
  await target.query("insert into invoices values (1), (2)");
  await expect(moveToPostgres(file.place, target.place)).rejects.toThrow("has records already: 2 in invoices");
  const tables = await target.query("select tablename from pg_tables where schemaname = 'public'");
  expect(tables).toEqual([{ tablename: "invoices" }]);
});

test("a record that PostgreSQL refuses leaves no record there, and the move can be repeated", SLOW, async () => {
  const [file, target] = [await filledFile(), await emptyTarget()];
  await file.query("update usage_marks set value = 'text' where name = 'mark 1000'");
  await expect(moveToPostgres(file.place, target.place)).rejects.toThrow(
    /PostgreSQL refuses records of usage_marks: .*text/,
  );
  expect(await target.query("select count(*)::int as count from projects")).toEqual([{ count: 0 }]);
  await file.query("update usage_marks set value = 1000 where name = 'mark 1000'");
  expect((await moveToPostgres(file.place, target.place)).moved).toBe(true);
});

test("a file of an earlier version, and no file, are refused", SLOW, async () => {
  const [file, target] = [await filledFile(), await emptyTarget()];
  await file.query("delete from kysely_migration where name = (select max(name) from kysely_migration)");
  await expect(moveToPostgres(file.place, target.place)).rejects.toThrow(
    /of an earlier version \(it lacks schema-\d+\)/,
  );
  await expect(moveToPostgres(`${file.place}.none`, target.place)).rejects.toThrow("no database at");
});

test("an audit log that was edited before is moved as it is, and named", SLOW, async () => {
  const [file, target] = [await filledFile(), await emptyTarget()];
  await file.query("update audit_log set action = 'other' where seq = 2");
  const { audit } = await moveToPostgres(file.place, target.place);
  expect(audit.broken).toEqual({ seq: 2, fault: "edited" });
});
