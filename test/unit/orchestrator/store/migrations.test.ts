/** This version reads rows that an older version wrote. */

import { Migrator, sql } from "kysely";
import { expect, test } from "vitest";
import { migrations } from "../../../../orchestrator/store/migrations/migrations.ts";
import { toRow } from "../../../../orchestrator/store/sandboxes/record.ts";
import { createStore } from "../../../../orchestrator/store/store.ts";

import { emptyTestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

test("a sandbox from before network policies could change keeps its options", async () => {
  const { db, drop } = await emptyTestDatabase();
  const migrator = new Migrator({ db, provider: migrations(testSeal) });
  expect((await migrator.migrateTo("0002")).error).toBeUndefined();
  const network = { allowPublicTraffic: false, denyOut: ["0.0.0.0/0"] };
  await sql`
    insert into sandboxes (id, project_id, state, execution_id, node_id, template_id, build_id, cpu_count, memory_mb,
      disk_mb, envd_version, metadata, envs, network, internet, on_timeout, auto_resume, timeout_s, created_at,
      started_at, end_at, deadline_at)
    values ('i1', 'p', 'running', 'e1', 'n', 't', 'b', 1, 128, 0, '0', '{}', '', ${JSON.stringify(network)}, 0, 'kill',
      0, 1, 1, 1, 1, 0)`.execute(db);
  expect((await migrator.migrateToLatest()).error).toBeUndefined();
  const store = createStore(db, () => 5, testSeal);
  const record = await store.sandboxes.get("i1");
  expect(record).toMatchObject({ network, internet: false, sealedProxyPassword: undefined, networkVersion: 0 });
  expect(await store.networks.changing("i1")).toBeUndefined();
  expect(await store.networks.unsettled(10)).toEqual([]);
  await drop();
});

test("a pause that began before the update is found again, with its snapshot", async () => {
  const { db, drop } = await emptyTestDatabase();
  const migrator = new Migrator({ db, provider: migrations(testSeal) });
  expect((await migrator.migrateTo("0005")).error).toBeUndefined();
  await sql`
    insert into sandboxes (id, project_id, state, execution_id, node_id, template_id, build_id, cpu_count, memory_mb,
      disk_mb, envd_version, metadata, envs, on_timeout, auto_resume, timeout_s, created_at, started_at, end_at,
      deadline_at, capture_id, capture_memory)
    values ('i1', 'p', 'pausing', 'e1', 'n', 't', 'b', 1, 128, 0, '0', '{}', '', 'kill', 0, 1, 1, 1, 1, 0, 's1',
      1)`.execute(db);
  expect((await migrator.migrateToLatest()).error).toBeUndefined();
  const store = createStore(db, () => 5, testSeal);
  expect(await store.sandboxes.get("i1")).toMatchObject({ pendingSnapshot: { id: "s1", memory: true } });
  expect(await store.pausedSandboxes.wanted(["s1", "s2"])).toEqual(new Set(["s1"]));
  await drop();
});

test("the migrations make exactly the columns that a sandbox's record is written to", async () => {
  const { db, drop } = await emptyTestDatabase();
  await new Migrator({ db, provider: migrations(testSeal) }).migrateToLatest();
  const tables = await db.introspection.getTables();
  const made = tables.find(({ name }) => name === "sandboxes")?.columns.map(({ name }) => name);
  expect(new Set(made)).toEqual(new Set(Object.keys(toRow(newSandbox(), testSeal))));
  await drop();
});

test("of two network changes that read the same version only one begins and takes effect", async () => {
  const { db, drop } = await emptyTestDatabase();
  await new Migrator({ db, provider: migrations(testSeal) }).migrateToLatest();
  const store = createStore(db, () => 5, testSeal);
  const project = await store.projects.create("test");
  await store.sandboxes.add(newSandbox({ projectId: project.id }), { sandboxes: 10 });
  const seen = await store.move({ id: "i1", to: "running" });
  if (seen === undefined) throw new Error("not running");
  const first = await store.networks.begin(seen, "sealed 1");
  expect(await store.networks.begin(seen, "sealed 2")).toBeUndefined();
  if (first === undefined) throw new Error("not begun");
  const later = await store.networks.begin(first, "sealed 3");
  const columns = { network: { denyOut: ["1.1.1.1"] }, internet: false, sealedProxyPassword: "s" };
  expect(await store.changeNetwork(first, columns, {})).toBeUndefined();
  expect(await store.networks.replaceChange(first, null)).toBe(false);
  expect((await store.sandboxes.get("i1"))?.network).toBeUndefined();
  if (later === undefined) throw new Error("not begun");
  expect(await store.changeNetwork({ ...later, executionId: "e0" }, columns, {})).toBeUndefined();
  expect(await store.changeNetwork(later, columns, {})).toMatchObject(columns);
  expect(await store.changeNetwork(later, columns, {})).toBeUndefined();
  await drop();
});

test("a sandbox that was paused before sizes were recorded has none until its node reports it", async () => {
  const { db, drop } = await emptyTestDatabase();
  const migrator = new Migrator({ db, provider: migrations(testSeal) });
  expect((await migrator.migrateTo("0006")).error).toBeUndefined();
  await sql`
    insert into sandboxes (id, project_id, state, execution_id, node_id, template_id, build_id, cpu_count, memory_mb,
      disk_mb, envd_version, metadata, envs, on_timeout, auto_resume, timeout_s, created_at, started_at, end_at,
      deadline_at, snapshot_id, snapshot_memory)
    values ('i1', 'p', 'paused', 'e1', 'n', 't', 'b', 1, 128, 0, '0', '{}', '', 'kill', 0, 1, 1, 1, 1, 0, 's1',
      1)`.execute(db);
  expect((await migrator.migrateToLatest()).error).toBeUndefined();
  const store = createStore(db, () => 5, testSeal);
  expect((await store.sandboxes.get("i1"))?.snapshot).toEqual({ id: "s1", memory: true });
  await store.storage.fillSizes("n", [{ snapshotId: "s1", memoryBytes: 3, diskBytes: 4 }]);
  expect((await store.sandboxes.get("i1"))?.snapshot?.size).toEqual({ memoryBytes: 3, diskBytes: 4 });
  await drop();
});

test("an end for memory from before the update has the reason's new name", async () => {
  const { db, drop } = await emptyTestDatabase();
  const migrator = new Migrator({ db, provider: migrations(testSeal) });
  expect((await migrator.migrateTo("0007")).error).toBeUndefined();
  await sql`
    insert into sandboxes (id, project_id, state, execution_id, node_id, template_id, build_id, cpu_count, memory_mb,
      disk_mb, envd_version, metadata, envs, on_timeout, auto_resume, timeout_s, created_at, started_at, end_at,
      deadline_at, ended_at, end_reason)
    values ('i1', 'p', 'gone', 'e1', 'n', 't', 'b', 1, 128, 0, '0', '{}', '', 'kill', 0, 1, 1, 1, 1, 0, 2, 'oom'),
      ('i2', 'p', 'gone', 'e2', 'n', 't', 'b', 1, 128, 0, '0', '{}', '', 'kill', 0, 1, 1, 1, 1, 0, 2, 'timeout')`.execute(
    db,
  );
  expect((await migrator.migrateToLatest()).error).toBeUndefined();
  const store = createStore(db, () => 5, testSeal);
  expect((await store.sandboxes.get("i1"))?.end).toEqual({ reason: "out_of_memory" });
  expect((await store.sandboxes.get("i2"))?.end).toEqual({ reason: "timeout" });
  await drop();
});
