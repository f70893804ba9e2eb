/** Containers of paused sandboxes that Docker has lost, and what a lost database named: decisions without a Docker daemon. */

import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { owned } from "../../../../agent/recovery/janitor.ts";
import { holdRemains, releaseRemains } from "../../../../agent/recovery/remains.ts";
import { inNewContainer } from "../../../../agent/snapshots/restore/in-new-container.ts";
import { noteNewDatabase } from "../../../../agent/store/database/new-database.ts";
import type { Snapshot } from "../../../../agent/store/snapshots.ts";
import { openStores } from "../../../../agent/store/stores.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { build, resources } from "../../../support/fakes/agent-parts.ts";
import { fakeEngine } from "../../../support/fakes/fake-engine.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });

test.each([
  ["/var/lib/docker/overlay2/abc/diff", "disk_lost", "a disk in Docker's own layer is gone with its container"],
  [undefined, "disk_lost", "a disk of a storage driver without directories is gone with its container"],
  ["/disks/c1/layer/diff", "no_compatible_node", "a disk image that is not there may come back with its file system"],
] as const)("a lost container with the upper directory %s is %s: %s", async (upperDirectory, code, _why) => {
  const never = () => Promise.reject(new Error("nothing may be made"));
  const { docker, network } = fakeEngine().machine();
  const stores = openStores(":memory:", testSeal);
  const disk = { containerId: "c1", controlToken: "t", build, resources, runtime: "r", upperDirectory, createdAt: 0 };
  const done = inNewContainer({ id: "s1", sandboxId: "x", disk } as Snapshot, {
    docker: {
      ...docker,
      containers: { ...docker.containers, create: never, inspect: never, rename: never },
      runtime: never,
    },
    network,
    stores,
    log,
  });
  await expect(done).rejects.toMatchObject({ code });
  stores.close();
});

test.each([
  ["pause", ["c2", "c1"]],
  ["checkpoint", []],
] as const)("of a %s whose container is gone the agent keeps the disks %j", (kind, disks) => {
  const stores = openStores(":memory:", testSeal);
  const sizes = { memoryBytes: 0, diskBytes: 0, takenAt: 0 };
  const facts = {
    id: "s1",
    kind,
    sandboxId: "x",
    executionId: "e",
    projectId: undefined,
    image: undefined,
    memory: true,
  };
  const disk = { controlToken: "t", build, resources, runtime: "r", upperDirectory: undefined, createdAt: 0 };
  stores.snapshots.intend({
    ...facts,
    state: "stored",
    disk: { ...disk, containerId: "c2", takenFrom: "c1" },
    ...sizes,
  });
  expect([...owned(stores)]).toEqual(disks);
  stores.close();
});

test("the row of a paused sandbox names both containers while its disk moves, and the new one with its directory then", () => {
  const { snapshots } = openStores(":memory:", testSeal);
  const disk = { containerId: "c1", controlToken: "t", build, resources, runtime: "r", createdAt: 0 };
  snapshots.intend({
    id: "s1",
    kind: "pause",
    state: "stored",
    sandboxId: "x",
    executionId: "e",
    projectId: undefined,
    disk: { ...disk, upperDirectory: "/disks/c1/layer/diff" },
    image: undefined,
    memory: true,
    memoryBytes: 0,
    diskBytes: 0,
    takenAt: 0,
  });
  snapshots.moveDisk("s1", { containerId: "c2", takenFrom: "c1", upperDirectory: undefined });
  expect(snapshots.get("s1")?.disk).toEqual({ ...disk, containerId: "c2", takenFrom: "c1" });
  snapshots.moveDisk("s1", { containerId: "c2", takenFrom: undefined, upperDirectory: "/disks/c2/layer/diff" });
  expect(snapshots.get("s1")?.disk).toEqual({ ...disk, containerId: "c2", upperDirectory: "/disks/c2/layer/diff" });
});

test("what a lost database named is held once, also when the agent is killed before it has recorded it, and is released in time", async () => {
  const directory = await mkdtemp(join(tmpdir(), "svc-remains-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const databasePath = join(directory, "agent.db");
  const clock = { now: 1_000 };
  const start = async () => {
    await noteNewDatabase(databasePath);
    return openStores(databasePath, testSeal);
  };
  // Killed here: the next start still knows that the database is new.
  (await start()).close();
  const stores = await start();
  const containers = {
    list: () => Promise.resolve([{ id: "c1", name: "n", running: false }]),
    disks: () => Promise.resolve(["c1", "c2"]),
    snapshotImages: () => Promise.resolve([{ id: "i", snapshotId: "s2", createdAt: 0 }]),
    buildImages: () => Promise.resolve(["svc/build:mine", "svc/build:other"]),
    image: (name: string) => Promise.resolve({ labels: name.endsWith("mine") ? { "svc.node": "n1" } : {} } as never),
  };
  const files = { list: () => Promise.resolve({ stored: ["s1"], unfinished: [] }) };
  const deps = { containers, files, stores, nodeId: "n1", databasePath, keepMs: 500, now: () => clock.now, log };
  await holdRemains(deps);
  const all = {
    containers: new Set(["c1", "c2"]),
    snapshots: new Set(["s1", "s2"]),
    images: new Set(["svc/build:mine"]),
  };
  expect(stores.remains.held()).toEqual(all);
  expect(existsSync(`${databasePath}-new`)).toBe(false);
  clock.now = 1_400;
  await holdRemains(deps);
  releaseRemains(deps);
  expect(stores.remains.held()).toEqual(all);
  clock.now = 1_500;
  releaseRemains(deps);
  expect(stores.remains.held().containers.size).toBe(0);
  stores.close();
});
