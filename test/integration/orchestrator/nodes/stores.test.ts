/** A node and the database that it serves: an empty one, an older one, a full one; adoption, and what is held. */

import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

let cluster: Cluster;
afterEach(() => cluster.stop());

const GRACE = { orphanGraceMs: 10, missingGraceMs: 10 };
/** The node reports when a test says so, and is not silent for too long, however slow the machine is. */
const PATIENT = { nodeTimeoutMs: 600_000, nodeLostMs: 600_000 };
const options = { onSqlite: true, config: { ...GRACE, ...PATIENT }, agent: { heartbeatMs: 0 } } as const;

const admin = (method: string, path: string) =>
  cluster.ask(method, path, { key: null, headers: { "x-admin-token": ADMIN_TOKEN } });
const store = (work: string) => admin(work === "store" ? "GET" : "POST", `/nodes/${cluster.agent.nodeId}/${work}`);
const file = () => join(cluster.folder, "svc.db");
const FILES = ["", "-wal", "-shm"];

async function create(metadata: Record<string, string> = {}): Promise<string> {
  const made = await cluster.ask("POST", "/sandboxes", { body: { templateID: "base", timeout: 3600, metadata } });
  expect(made.status).toBe(201);
  return (made.body as { sandboxID: string }).sandboxID;
}

async function runningAndPaused() {
  const running = await create({ name: "running" });
  const paused = await create({ name: "paused" });
  expect((await cluster.ask("POST", `/sandboxes/${paused}/pause`)).status).toBe(204);
  await cluster.agent.beat();
  return { running, paused };
}

const removed = () => {
  for (const end of FILES) rmSync(`${file()}${end}`, { force: true });
};
const kept = () => [cluster.agent.live.size, cluster.agent.snapshots.size];

/** Many reports, so that every grace period has passed. */
async function beats(): Promise<void> {
  for (let count = 0; count < 5; count++) {
    await cluster.agent.beat();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("an empty database ends nothing on a node: the node takes no work, and the health page names the commands", async () => {
  cluster = await startCluster(options);
  await runningAndPaused();
  await cluster.restart({}, removed);
  await beats();
  expect(kept()).toEqual([1, 1]);
  expect([cluster.agent.holds, cluster.agent.stops]).toEqual([[], []]);
  const ready = await cluster.ask("GET", "/readyz", { key: null });
  expect(ready.status).toBe(503);
  expect(ready.text).toMatch(/another database.*scripts\/node adopt/);
  expect((await store("store")).body).toMatchObject({ serves: false, sandboxes: 2, held: [] });
});

test("the database that a node serves is taken again when it comes back", async () => {
  cluster = await startCluster(options);
  const { running, paused } = await runningAndPaused();
  const away = `${file()}-away`;
  await cluster.restart({}, () => {
    for (const end of FILES) {
      try {
        copyFileSync(`${file()}${end}`, `${away}${end}`);
      } catch {
        // A database that was closed has no log.
      }
    }
    removed();
  });
  await beats();
  expect(cluster.agent.serving.refusal).toMatch(/another database/);
  await cluster.restart({}, () => {
    removed();
    copyFileSync(away, file());
  });
  await beats();
  expect(cluster.agent.serving.refusal).toBeUndefined();
  expect((await cluster.ask("GET", `/sandboxes/${running}`)).body).toMatchObject({ state: "running" });
  expect((await cluster.ask("POST", `/sandboxes/${paused}/connect`, { body: { timeout: 60 } })).status).toBe(201);
});

test("an empty database adopts the running and the paused sandboxes of a node by one command, with their metadata", async () => {
  cluster = await startCluster(options);
  const { running, paused } = await runningAndPaused();
  await cluster.restart({}, removed);
  await beats();
  // The database has a project again, as after `up`.
  const project = await cluster.addProject("again");
  const adopted = await store("adopt");
  expect(adopted).toMatchObject({ status: 200, body: { imported: 2, corrected: 0, incomplete: [] } });
  await beats();
  expect([kept(), cluster.agent.holds]).toEqual([[1, 1], []]);
  const read = async (id: string) => (await cluster.ask("GET", `/sandboxes/${id}`, { key: project.key })).body;
  expect(await read(running)).toMatchObject({ state: "running", metadata: { name: "running" } });
  expect(await read(paused)).toMatchObject({ state: "paused", metadata: { name: "paused" } });
  const connected = await cluster.ask("POST", `/sandboxes/${paused}/connect`, {
    key: project.key,
    body: { timeout: 60 },
  });
  expect(connected.status).toBe(201);
});

test("an older copy of the database changes nothing on the node until it adopts what the node has", async () => {
  cluster = await startCluster(options);
  const before = await create();
  await cluster.agent.beat();
  const backup = `${file()}-backup`;
  await cluster.restart({}, () => copyFileSync(file(), backup));
  await cluster.agent.beat();
  const later = await create();
  expect((await cluster.ask("POST", `/sandboxes/${before}/pause`)).status).toBe(204);
  await cluster.agent.beat();
  await cluster.restart({}, () => {
    removed();
    copyFileSync(backup, file());
  });
  await beats();
  expect(cluster.agent.serving.refusal).toMatch(/older than what this node has seen/);
  expect([kept(), cluster.agent.holds]).toEqual([[1, 1], []]);
  expect((await cluster.ask("POST", "/sandboxes", { body: { templateID: "base" } })).status).toBe(503);
  expect((await cluster.ask("DELETE", `/sandboxes/${before}`)).status).toBe(503);
  expect((await store("adopt")).body).toMatchObject({ imported: 1, corrected: 1 });
  await beats();
  expect((await cluster.ask("GET", `/sandboxes/${before}`)).body).toMatchObject({ state: "paused" });
  expect((await cluster.ask("GET", `/sandboxes/${later}`)).body).toMatchObject({ state: "running" });
});

test("what a discarding operator gives up is held by the node, and the audit log has an entry for each", async () => {
  cluster = await startCluster(options);
  await runningAndPaused();
  await cluster.restart({}, removed);
  await beats();
  expect((await store("discard")).status).toBe(204);
  await beats();
  expect(cluster.agent.holds).toHaveLength(2);
  const { body } = await admin("GET", "/admin/audit");
  expect(JSON.stringify(body)).toMatch(/"action":"hold"/);
});
