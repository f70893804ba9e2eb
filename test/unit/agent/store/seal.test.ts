/** Secrets in the node's database: sealed under a key that is kept in a file of its own. */

import { chmod, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sealKey } from "../../../../agent/store/seal-key.ts";
import { openStores } from "../../../../agent/store/stores.ts";
import { type EgressPolicy, OPEN } from "../../../../shared/policy/egress-policy.ts";
import { createSeal } from "../../../../shared/program/seal.ts";
import { filesWith } from "../../../support/files-with.ts";
import { testSeal } from "../../../support/test-seal.ts";

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

test("those of the version before are sealed, and what it had deleted leaves the file", async () => {
  openStores(path(), testSeal).close();
  const former = new Database(path());
  former.exec(
    "insert into executions (id, sandbox_id, container_id, end_at, started_at, warm) values ('1', 's', 'c', 1, 1, 0)",
  );
  former.prepare("update executions set egress = ?").run(JSON.stringify(policy("old")));
  former.exec("create table former (text text)");
  former.prepare("insert into former values (?)").run("hunter2".repeat(500));
  former.exec(
    "drop table former; pragma user_version = 5; alter table executions drop column project_id; alter table snapshots drop column project_id",
  );
  former.close();
  expect(await filesWith(directory, "hunter2")).toEqual(["agent.db"]);
  const stores = openStores(path(), testSeal);
  expect(stores.executions.all()).toMatchObject([{ id: "1", egress: policy("old") }]);
  expect(await filesWith(directory, "hunter2")).toEqual([]);
  stores.close();
});

test("a policy opens under its own key and for its own execution only, and the error does not say it", () => {
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

test("the key is made once, and only its owner may read it", async () => {
  const file = join(directory, "keys", "seal.key");
  const key = sealKey(file);
  expect(key).toMatch(/^[\w-]{43}$/);
  expect(((await stat(file)).mode & 0o777).toString(8)).toBe("600");
  await chmod(file, 0o644);
  expect(sealKey(file)).toBe(key);
  expect(((await stat(file)).mode & 0o777).toString(8)).toBe("600");
  await writeFile(file, "");
  expect(() => sealKey(file)).toThrow("holds no key");
});
