/** The disk of the SQLite database is really full, or fails: what callers, the health page and the nodes see, and what is kept. */

import { execFileSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { startMortalCluster } from "../../../support/cluster/mortal-cluster.ts";
import { type SmallDisk, smallDisk } from "../../../support/store/small-disk.ts";

const asRoot = test.skipIf(process.getuid?.() !== 0);
const SLOW = { timeout: 30_000, interval: 50 };
const FULL = /the disk of the database is full: its operator must make room/;

async function onSmallDisk() {
  const disk = smallDisk(24);
  onTestFinished(() => disk.remove());
  const config = { nodeTimeoutMs: 600_000, nodeLostMs: 600_000 };
  const cluster = await startCluster({ onSqlite: true, folder: disk.place, agent: { heartbeatMs: 0 }, config });
  // Before the disk is removed.
  onTestFinished(() => cluster.stop());
  await expect.poll(() => existsSync(ballastOf(disk))).toBe(true);
  return { disk, cluster, ...callsTo(cluster) };
}

const ballastOf = ({ place }: SmallDisk) => join(place, "svc.db-ballast");

function callsTo(cluster: Cluster) {
  const create = (more: object = {}) =>
    cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", timeout: 3600, ...more } });
  const runs = (id: string) => [...cluster.agent.live.values()].some(({ body }) => body.sandboxId === id);
  return {
    create,
    runs,
    created: async (more?: object) => {
      const made = await create(more);
      expect(made.status).toBe(201);
      return (made.body as { sandboxID: string }).sandboxID;
    },
    kill: (id: string) => cluster.ask("DELETE", `/sandboxes/${id}`),
    pause: (id: string) => cluster.ask("POST", `/sandboxes/${id}/pause`),
    connect: (id: string) => cluster.ask("POST", `/sandboxes/${id}/connect`, { body: { timeout: 60 } }),
    state: async (id: string) =>
      ((await cluster.ask("GET", `/sandboxes/${id}`)).body as { state?: string }).state ?? "none",
    ready: () => cluster.ask("GET", "/readyz?verbose", { key: null }),
    lastEvent: async (id: string) => {
      const { body } = await cluster.ask("GET", `/events/sandboxes/${id}`);
      return (body as { type: string; eventData: object | null }[])[0];
    },
  };
}

asRoot(
  "on a full disk nothing begins, kills and pauses are recorded in the room held back, and room is all it needs (only as root)",
  async () => {
    const { cluster, disk, create, created, kill, pause, connect, state, ready, runs } = await onSmallDisk();
    const [toKill, toPause, stays] = [await created(), await created(), await created({ metadata: { kept: "yes" } })];
    const paused = await created();
    expect((await pause(paused)).status).toBe(204);
    disk.fill();
    expect(await create()).toMatchObject({
      status: 507,
      body: { error_code: "no_space", message: expect.stringMatching(FULL) as unknown },
    });
    await expect.poll(async () => (await ready()).text, SLOW).toMatch(FULL);
    expect((await ready()).status).toBe(503);
    expect((await kill(toKill)).status).toBe(204);
    expect((await pause(toPause)).status).toBe(204);
    expect([runs(toKill), runs(toPause), runs(stays)]).toEqual([false, false, true]);
    expect([await state(toKill), await state(toPause), await state(stays)]).toEqual(["none", "paused", "running"]);
    expect((await create()).status).toBe(507);
    expect((await ready()).text).toMatch(FULL);
    disk.makeRoom();
    await expect.poll(async () => (await create()).status, SLOW).toBe(201);
    await expect.poll(async () => (await ready()).status, SLOW).toBe(200);
    const ballastBytes = () => statSync(ballastOf(disk), { throwIfNoEntry: false })?.size;
    await expect.poll(ballastBytes, SLOW).toBe(4 * 1024 * 1024);
    await cluster.restart();
    await cluster.agent.beat();
    expect([await state(toKill), await state(toPause), await state(stays)]).toEqual(["none", "paused", "running"]);
    expect([(await connect(toPause)).status, (await connect(paused)).status]).toEqual([201, 201]);
    expect((await cluster.ask("GET", `/sandboxes/${stays}`)).body).toMatchObject({ metadata: { kept: "yes" } });
  },
  120_000,
);

asRoot(
  "without any room a kill and a pause still happen on the node, and are recorded when there is room (only as root)",
  async () => {
    const { cluster, disk, created, kill, pause, connect, state, runs, lastEvent } = await onSmallDisk();
    const [toKill, toPause, expiring] = [await created(), await created(), await created({ timeout: 3 })];
    disk.fill();
    // The first kill releases the room that is held back, and another program takes it.
    expect((await kill(toKill)).status).toBe(204);
    disk.fill();
    expect(disk.freeBytes()).toBe(0);
    expect(await pause(toPause)).toMatchObject({
      status: 507,
      body: {
        error_code: "no_space",
        message: expect.stringMatching(/paused on its node; its record follows/) as unknown,
      },
    });
    expect([runs(toPause), cluster.agent.snapshots.size]).toEqual([false, 1]);
    // A sandbox whose time has passed does not run on either.
    await expect.poll(() => runs(expiring), SLOW).toBe(false);
    await expect(cluster.agent.beat()).rejects.toThrow(FULL);
    disk.makeRoom();
    await expect.poll(() => cluster.agent.beat().then(() => state(toPause)), SLOW).toBe("paused");
    expect(await lastEvent(toPause)).toMatchObject({ type: "sandbox.lifecycle.paused", eventData: { memory: true } });
    expect((await connect(toPause)).status).toBe(201);
    await expect.poll(() => lastEvent(expiring), SLOW).toMatchObject({ eventData: { reason: "timeout" } });
  },
  120_000,
);

asRoot(
  "an orchestrator starts on a full disk, and kills there (only as root)",
  async () => {
    const { cluster, disk, created, kill, ready, runs, create } = await onSmallDisk();
    const id = await created();
    await cluster.restart({}, () => disk.fill());
    await cluster.agent.beat().catch(() => undefined);
    await expect.poll(async () => (await ready()).text, SLOW).toMatch(FULL);
    expect((await create()).status).toBe(507);
    expect([(await kill(id)).status, runs(id)]).toEqual([204, false]);
  },
  120_000,
);

test("a disk that reports errors: 503 with that cause, kills reach the node, and all is well when it works again", async () => {
  const cluster = await startMortalCluster({ SVC_RECONCILE_EVERY_MS: "100" }, { server: null });
  onTestFinished(() => cluster.stop());
  const { agent } = cluster;
  const create = () => cluster.ask("POST", "/v2/sandboxes", { templateID: "base", timeout: 3600 });
  const [first, second] = [(await create()).body, (await create()).body] as { sandboxID: string }[];
  // The kernel lets the program write no byte of a file any more: SQLite sees errors that are none of a full disk.
  const limit = (bytes: string) =>
    execFileSync("prlimit", ["--pid", String(cluster.orchestrator.pid), `--fsize=${bytes}:`]);
  limit("1");
  const ERROR = /the database cannot be used now: its disk reports an input\/output error/;
  expect(await create()).toMatchObject({ status: 503, text: expect.stringMatching(ERROR) as unknown });
  await expect.poll(async () => (await cluster.ask("GET", "/readyz?verbose", undefined, {})).text, SLOW).toMatch(ERROR);
  const killed = await cluster.ask("DELETE", `/sandboxes/${first?.sandboxID ?? ""}`);
  expect(killed).toMatchObject({ status: 503, text: expect.stringMatching(/ended on its node/) as unknown });
  expect([...agent.live.values()].map(({ body }) => body.sandboxId)).toEqual([second?.sandboxID]);
  limit("unlimited");
  await expect.poll(async () => (await create()).status, SLOW).toBe(201);
  await expect
    .poll(async () => (await cluster.ask("GET", `/events/sandboxes/${first?.sandboxID ?? ""}`)).text, SLOW)
    .toMatch(/lifecycle\.killed/);
  expect((await cluster.ask("GET", `/sandboxes/${second?.sandboxID ?? ""}`)).body).toMatchObject({ state: "running" });
}, 120_000);
