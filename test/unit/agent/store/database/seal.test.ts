/** Secrets in the node's database are sealed under a key from a file of its own. */

import { chmod, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { LiveContainer } from "../../../../../agent/containers/live-container.ts";
import { openNodeSeal, sealKeys } from "../../../../../agent/store/database/seal-key.ts";
import type { Snapshot } from "../../../../../agent/store/snapshots.ts";
import { openStores } from "../../../../../agent/store/stores.ts";
import { type EgressPolicy, OPEN } from "../../../../../shared/policy/egress-policy.ts";
import { createSeal } from "../../../../../shared/program/sealing/seal.ts";
import { filesWith } from "../../../../support/store/files-with.ts";
import { testSeal } from "../../../../support/store/test-seal.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-seal-"));
});
afterEach(() => rm(directory, { recursive: true }));

const path = () => join(directory, "agent.db");

function policy(name: string): EgressPolicy {
  return {
    ...OPEN,
    rules: [{ host: "api.example.com", headers: { "X-Key": `hunter2-header-${name}` } }],
    proxy: { host: "198.51.100.1", port: 1080, username: "me", password: `hunter2-password-${name}` },
  };
}

const execution = (id: string, egress: EgressPolicy) => ({
  id,
  sandboxId: `s${id}`,
  projectId: undefined,
  containerId: `c${id}`,
  egress,
  endAt: 1,
  onTimeout: { does: "kill", memory: true } as const,
  startedAt: 1,
  warm: false,
  running: true,
});

test("policies are in no file of the database, neither as they were nor as they are", async () => {
  const stores = openStores(path(), testSeal);
  stores.executions.add(execution("1", policy("first")));
  stores.executions.add(execution("2", policy("other")));
  stores.executions.setEgress("1", policy("second"));
  expect(await filesWith(directory, "hunter2")).toEqual([]);
  stores.executions.remove("2");
  expect(stores.executions.all()).toMatchObject([{ id: "1", egress: policy("second") }]);
  stores.close();
  expect(await filesWith(directory, "hunter2")).toEqual([]);
  const again = openStores(path(), testSeal);
  expect(again.executions.all()).toMatchObject([{ egress: policy("second") }]);
  again.close();
});

test("a policy opens under its own key and for its own execution only, and the error does not contain it", () => {
  const stores = openStores(path(), testSeal);
  stores.executions.add(execution("1", policy("first")));
  stores.close();
  const other = openStores(path(), createSeal("another key of the tests", "/etc/svc/seal.key"));
  expect(() => other.executions.all()).toThrow("was the key in /etc/svc/seal.key changed?");
  other.close();
  const moved = new Database(path());
  moved.exec("update executions set id = '2'");
  moved.close();
  const stores2 = openStores(path(), testSeal);
  expect(() => stores2.executions.all()).toThrow("does not open");
  stores2.close();
});

const disk = (name: string) => ({
  controlToken: `hunter2-control-${name}`,
  build: { templateId: "base", buildId: "b1", image: "svc/base:1" },
  resources: { cpuCount: 1, memoryMB: 128, diskSizeMB: 512 },
  runtime: "/opt/svc/envd",
  createdAt: 1,
});
const container = (id: string) => {
  const { runtime, ...rest } = disk(id);
  return { id, slot: { number: 7 }, pid: 1, ...rest, runtime, upperDirectory: "/upper" } as unknown as LiveContainer;
};
const snapshot = (id: string): Snapshot => ({
  id,
  kind: "pause",
  state: "taking",
  sandboxId: "s",
  executionId: "e",
  projectId: undefined,
  disk: { containerId: "c", ...disk(id), upperDirectory: undefined },
  image: undefined,
  memory: true,
  memoryBytes: 0,
  diskBytes: 0,
  takenAt: 0,
  resuming: false,
});

test("control tokens of containers and of stored disks are in no file of the database", async () => {
  const stores = openStores(path(), testSeal);
  stores.containers.add(container("1"));
  stores.snapshots.intend(snapshot("2"));
  stores.snapshots.keep("2", { memoryBytes: 1, diskBytes: 2, takenAt: 3 }, () => stores.containers.remove("none"));
  expect(await filesWith(directory, "hunter2")).toEqual([]);
  stores.close();
  expect(await filesWith(directory, "hunter2")).toEqual([]);
  const again = openStores(path(), testSeal);
  expect(again.containers.all()).toMatchObject([{ id: "1", slot: 7, ...disk("1"), upperDirectory: "/upper" }]);
  const kept = { ...snapshot("2"), state: "stored", memoryBytes: 1, diskBytes: 2, takenAt: 3 };
  expect(again.snapshots.all()).toEqual([kept]);
  expect(again.snapshots.get("2")).toEqual(kept);
  again.close();
});

test("a control token opens for its own row only, and the error does not contain it", () => {
  const stores = openStores(path(), testSeal);
  stores.containers.add(container("1"));
  stores.snapshots.intend(snapshot("2"));
  stores.close();
  const moved = new Database(path());
  moved.exec(`update containers set control_token = (select json_extract(disk, '$.controlToken') from snapshots);
    update snapshots set id = '3'`);
  moved.close();
  const other = openStores(path(), testSeal);
  for (const read of [() => other.containers.all(), () => other.snapshots.all(), () => other.snapshots.get("3")]) {
    expect(read).toThrow("does not open");
    expect(read).not.toThrow("hunter2");
  }
  other.close();
});

test("the seal key is made once, and only its owner may read it", async () => {
  const file = join(directory, "keys", "seal.key");
  const [key, ...others] = sealKeys(file);
  expect(others).toEqual([]);
  expect(key).toMatch(/^[\w-]{43}$/);
  expect(((await stat(file)).mode & 0o777).toString(8)).toBe("600");
  await chmod(file, 0o644);
  expect(sealKeys(file)).toEqual([key]);
  expect(((await stat(file)).mode & 0o777).toString(8)).toBe("600");
  await writeFile(file, "");
  expect(() => sealKeys(file)).toThrow("holds no key");
});

/** Adds a new first line to the file of keys, as `scripts/rotate seal-key` does. */
async function addKey(file: string, key: string): Promise<void> {
  await writeFile(file, `${key}\n${sealKeys(file).join("\n")}\n`, { mode: 0o600 });
}

test("a new first key takes over all values, and earlier keys leave the file only after that, wherever the agent dies", async () => {
  const file = join(directory, "seal.key");
  const first = openStores(path(), openNodeSeal(file));
  first.executions.add(execution("1", policy("first")));
  first.containers.add(container("1"));
  first.snapshots.intend(snapshot("2"));
  first.close();
  const [old] = sealKeys(file);
  const holds = (stores: ReturnType<typeof openStores>) => {
    expect(stores.executions.all()).toMatchObject([{ id: "1", egress: policy("first") }]);
    expect(stores.containers.all()).toMatchObject([disk("1")]);
    expect(stores.snapshots.all()).toEqual([snapshot("2")]);
    stores.close();
  };

  await addKey(file, "a-second-key-of-the-tests-0123456789");
  // Dies before the first renewal is written, and then after it, before the earlier key is removed.
  const dies = () => {
    throw new Error("killed");
  };
  const unlucky = { ...openNodeSeal(file), close: dies };
  expect(() => openStores(path(), unlucky)).toThrow("killed");
  expect(() => openStores(path(), { ...openNodeSeal(file), forgetPrevious: dies })).toThrow("killed");
  expect(sealKeys(file)).toHaveLength(2);
  // A value from between, under the earlier key, when a third key comes.
  await addKey(file, "a-third-key-of-the-tests-01234567890");
  holds(openStores(path(), openNodeSeal(file)));
  expect(sealKeys(file)).toEqual(["a-third-key-of-the-tests-01234567890"]);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  holds(openStores(path(), openNodeSeal(file)));
  const stale = openStores(path(), createSeal(old, "the old key"));
  expect(() => stale.executions.all()).toThrow("does not open");
  stale.close();
});
