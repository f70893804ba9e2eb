/** The move of a full SQLite file: every table with rows of odd values, compared value by value; and a platform that goes on after it. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { NewEntry } from "../../../../orchestrator/store/audit/append.ts";
import { openDatabase } from "../../../../orchestrator/store/database.ts";
import { createLineage } from "../../../../orchestrator/store/lineage.ts";
import { moveToPostgres } from "../../../../orchestrator/store/moving/move.ts";
import { createStore } from "../../../../orchestrator/store/store.ts";
import { buildingOn } from "../../../support/cluster/building.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { type PostgresServer, startPostgres } from "../../../support/postgres/cluster.ts";
import { newDatabase, newMigratedDatabase, type TestDatabase } from "../../../support/store/databases.ts";
import { type Column, canonical, fillTables, tablesOf } from "../../../support/store/full-rows.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
}, 90_000);
afterAll(() => server.stop(), 60_000);

const NOW = 1_790_000_000_123;
const SLOW = { timeout: 240_000 };
const ODD = "t\u00e9st \u{1f98a} \u202e 'quote' \\ %_";

async function emptyTarget(): Promise<TestDatabase> {
  const target = await newDatabase({ server: server.url });
  onTestFinished(() => target.drop());
  return target;
}

/** Entries with nothing and with everything, the first of them deleted because of its age. */
async function auditIn(file: TestDatabase): Promise<void> {
  const opened = await openDatabase(file.place);
  await createLineage(opened.database, { now: () => NOW, sqlite: true });
  const { audit } = createStore(opened.database, () => NOW, testSeal);
  const bare: NewEntry = {
    at: NOW,
    project_id: null,
    actor_kind: "platform",
    actor_id: null,
    actor_mask: null,
    action: "collectBuilds",
    object_kind: null,
    object_id: null,
    result: "done",
    status: null,
    error_code: null,
    address: null,
    request_id: null,
    refers_to: null,
    details: null,
  };
  const full: NewEntry = {
    ...bare,
    at: NOW + 1,
    project_id: ODD,
    actor_kind: "key",
    actor_id: ODD,
    actor_mask: ODD,
    object_kind: "sandbox",
    object_id: `a\0b ${ODD}`,
    result: "failed",
    status: 500,
    error_code: "internal",
    address: "::1",
    request_id: ODD,
    refers_to: 1,
    details: JSON.stringify({ reason: `${ODD}\0` }),
  };
  await audit.addAll([{ ...bare, at: 1 }, bare, full]);
  expect(await audit.forget(2, { limit: 10, now: NOW })).toBe(1);
  await opened.close();
}

/** What is not there to be copied wrongly: tables without rows, and columns without a value, or without a null where there may be one. */
function lackingIn(name: string, columns: readonly Column[], rows: readonly Record<string, unknown>[]): string[] {
  if (rows.length === 0) return [name];
  const has = (column: Column, isNull: boolean) => rows.some((row) => (row[column.name] === null) === isNull);
  return columns
    .filter((column) => !has(column, false) || (column.isNullable && rows.length > 1 && !has(column, true)))
    .map((column) => `${name}.${column.name}`);
}

test("every row of every table arrives with every value as it was", SLOW, async () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-move-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [file, target] = [await newMigratedDatabase({ folder, server: null }), await emptyTarget()];
  await auditIn(file);
  fillTables(file.place);
  const tables = tablesOf(file.place);
  expect(tables.size).toBeGreaterThan(50);

  const moved = await moveToPostgres(file.place, target.place);
  expect(moved).toMatchObject({ moved: true, audit: { entries: 2, anchor: { seq: 1 }, head: { seq: 3 } } });
  expect(moved.audit.broken).toBeUndefined();
  for (const [name, columns] of tables) {
    const before = await file.query(`select * from "${name}"`);
    expect(lackingIn(name, columns, before)).toEqual([]);
    const after = await target.query(`select * from "${name}"`);
    expect(canonical(columns, after), name).toEqual(canonical(columns, before));
    expect(moved.counts[name], name).toBe(before.length);
  }
  expect(Object.values(moved.counts)).not.toContain(0);
  expect(await moveToPostgres(file.place, target.place)).toEqual({ ...moved, moved: false });
});

test("no column of PostgreSQL counts by itself, so none begins again after the move", SLOW, async () => {
  const target = await emptyTarget();
  await (await openDatabase(target.place)).close();
  const counting = await target.query(
    `select table_name, column_name from information_schema.columns
     where table_schema = 'public' and (is_identity = 'YES' or column_default like 'nextval%')`,
  );
  expect(counting).toEqual([]);
});

const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };

/** A platform on SQLite with something of each kind; the answers to lists that must be the same after the move. */
async function lived(cluster: Cluster) {
  const { create, paused } = sandboxesOn(() => cluster);
  const running = await create({ timeout: 3_600, metadata: { [`key ${ODD}`]: `value ${ODD}`, empty: "" } });
  const sleeping = await paused({ timeout: 3_600, metadata: { what: "sleeps" } });
  const ended = await create();
  const post = async (path: string, body: object) => {
    const answer = await cluster.ask("POST", path, { body });
    expect(answer.status, `${path}: ${answer.text}`).toBe(201);
  };
  await post(`/sandboxes/${running.sandboxID}/snapshots`, {});
  await post("/volumes", { name: "data", sizeMB: 64 });
  await post("/secrets", { name: "secret", value: ODD, metadata: { note: ODD } });
  await cluster.addProject("Zweites Projekt \u{1f98a}");
  await buildingOn(() => cluster).built("app", { steps: [{ type: "ENV", args: ["GREETING", ODD] }] });
  expect((await cluster.ask("DELETE", `/sandboxes/${ended.sandboxID}`)).status).toBe(204);
  const lists = async () => {
    const paths = ["/v2/sandboxes?state=running,paused", "/snapshots", "/volumes", "/secrets"];
    const ids = [running, sleeping, ended].map(({ sandboxID }) => `/events/sandboxes/${sandboxID}?orderAsc=true`);
    const bodies = await Promise.all([...paths, ...ids].map(async (path) => (await cluster.ask("GET", path)).body));
    const { body: projects } = await cluster.ask("GET", "/admin/projects", admin);
    return [...bodies, (projects as { name: string }[]).map(({ name }) => name)];
  };
  return { running, sleeping, lists };
}

test(
  "an orchestrator that is started on the moved records lists what was there, and goes on with all of it",
  SLOW,
  async () => {
    const target = await emptyTarget();
    const config = { buildPollMs: 20, nodeLostMs: 600_000, nodeTimeoutMs: 600_000 };
    const cluster = await startCluster({ onSqlite: true, config });
    onTestFinished(() => cluster.stop());
    const { running, sleeping, lists } = await lived(cluster);
    const before = await lists();
    expect(before[0]).toHaveLength(2);
    const verified = async () =>
      (await cluster.ask("GET", "/admin/audit/verify", admin)).body as { whole: boolean; entries: number };
    const audited = (await verified()).entries;

    await cluster.restart({ databaseUrl: target.place }, async () => {
      expect(await moveToPostgres(join(cluster.folder, "svc.db"), target.place)).toMatchObject({ moved: true });
    });
    await cluster.agent.beat();
    expect(await lists()).toEqual(before);
    const sequences = async () =>
      (await target.query("select sequence from events order by sequence")).map(({ sequence }) => Number(sequence));
    const former = await sequences();
    expect(former.length).toBeGreaterThan(4);

    expect((await cluster.ask("POST", `/sandboxes/${sleeping.sandboxID}/resume`, { body: {} })).status).toBe(201);
    expect((await cluster.ask("POST", `/sandboxes/${running.sandboxID}/pause`)).status).toBe(204);
    const { built, create } = buildingOn(() => cluster);
    await built("later", { fromTemplate: "app" });
    expect((await create("app")).status).toBe(201);
    expect((await create("later")).status).toBe(201);
    for (const { sandboxID } of [running, sleeping])
      expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);

    const all = await sequences();
    expect(all.slice(0, former.length)).toEqual(former);
    expect(new Set(all).size).toBe(all.length);
    expect(all.length).toBeGreaterThan(former.length + 4);
    const after = await verified();
    expect([after.whole, after.entries > audited]).toEqual([true, true]);
  },
);
