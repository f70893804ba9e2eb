/** The schema of the orchestrator's database: what it holds, and which databases of earlier versions it goes on with. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../../../orchestrator/store/database.ts";
import { sandboxTable } from "../../../../orchestrator/store/sandboxes/record.ts";
import { createStore } from "../../../../orchestrator/store/store.ts";
import { newDatabase, openTestDatabase, type TestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const LATER_COLUMNS = {
  nodes: ["refusal", "suspicions", "lost_at"],
  projects: ["node_labels"],
  usage_counters: ["project_id", "memory_bytes", "disk_bytes", "heard_at"],
  builds: ["owner", "owner_epoch"],
  sandboxes:
    "expiring_end_at expiring_until rewind_execution_id rewind_snapshot_id rewind_memory rewind_from rewind_s forked_from forked_at".split(
      " ",
    ),
  templates: ["warm_pool"],
};
/** Of these columns, which cannot be dropped before them. */
const LATER_INDEXES = ["sandboxes_rewind", "templates_warm_pool"];
const STEPS = Array.from({ length: 19 }, (_, index) => `schema-${String(index + 1).padStart(4, "0")}`);

/** A database with one project, whose notes of steps are those of a version that counted this many. */
async function databaseOf(steps: number): Promise<TestDatabase> {
  const folder = await mkdtemp(join(tmpdir(), "svc-schema-test-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const database = await newDatabase({ folder });
  onTestFinished(() => database.drop());
  const opened = await openDatabase(database.place);
  await createStore(opened.database, () => 5, testSeal).projects.create("kept");
  await opened.close();
  await database.query("delete from kysely_migration");
  // What the steps after the first one have made, which no earlier version had.
  for (const later of [
    "authorities",
    "join_tokens",
    "members",
    "edges",
    "orchestrators",
    "leases",
    "operations",
    "change_receipts",
    "changes",
    "blob_refs",
    "blob_sweeps",
    "drains",
    "drain_moves",
    "held_executions",
    "given_up",
    "console_sessions",
    "node_events",
    "node_starts",
  ])
    await database.query(`drop table ${later}`);
  for (const index of LATER_INDEXES) await database.query(`drop index ${index}`);
  for (const [table, columns] of Object.entries(LATER_COLUMNS))
    for (const column of columns) await database.query(`alter table ${table} drop column ${column}`);
  for (let step = 1; step <= steps; step++)
    await database.query(
      "insert into kysely_migration (name, timestamp) values (?, '2026-11-01T00:00:00.000Z')",
      String(step).padStart(4, "0"),
    );
  return database;
}

const noted = async (database: TestDatabase) =>
  (await database.query("select name from kysely_migration order by name")).map(({ name }) => name);

test("a database that earlier versions have brought to their last step keeps its rows, at every further start too", async () => {
  const database = await databaseOf(17);
  for (const _start of ["first", "second"]) {
    const opened = await openDatabase(database.place);
    expect(opened.schema).toBe(STEPS.at(-1));
    await opened.close();
    expect(await noted(database)).toEqual(STEPS);
    expect(await database.query("select name from projects")).toEqual([{ name: "kept" }]);
  }
});

test("a database that an earlier version has left at step 0012 is refused with both steps, and stays as it was", async () => {
  const database = await databaseOf(12);
  await expect(openDatabase(database.place)).rejects.toThrow(/schema 0012 .* goes on from 0017 only/);
  expect(await noted(database)).toHaveLength(12);
  expect(await database.query("select name from projects")).toEqual([{ name: "kept" }]);
});

test("a database that a newer version has expanded is used as it is, and one that it has contracted is refused", async () => {
  const database = await databaseOf(17);
  await (await openDatabase(database.place)).close();
  const note = (name: string) =>
    database.query("insert into kysely_migration (name, timestamp) values (?, '2027-01-01T00:00:00.000Z')", name);
  await database.query("alter table projects add column later text");
  await note("schema-9998");
  const opened = await openDatabase(database.place);
  expect(opened.schema).toBe("schema-9998");
  const store = createStore(opened.database, () => 5, testSeal);
  await store.projects.create("made by the older version");
  const names = (await store.projects.list()).map(({ name }) => name);
  expect(new Set(names)).toEqual(new Set(["kept", "made by the older version"]));
  await opened.close();
  await note("schema-9999-contracts");
  await expect(openDatabase(database.place)).rejects.toThrow(/to schema-9999-contracts, which takes away/);
  expect(await database.query("select name from projects order by name")).toHaveLength(2);
});

test("the schema has exactly the columns that a sandbox's record is written to", async () => {
  const opened = await openTestDatabase();
  const { database } = opened;
  const tables = await database.introspection.getTables();
  const made = tables.find(({ name }) => name === "sandboxes")?.columns.map(({ name }) => name);
  expect(new Set(made)).toEqual(new Set(Object.keys(sandboxTable(testSeal).toRow(newSandbox()))));
  await opened.close();
});

test("of two network changes that read the same version only one begins and takes effect", async () => {
  const opened = await openTestDatabase();
  const { database } = opened;
  const store = createStore(database, () => 5, testSeal);
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
  await opened.close();
});
