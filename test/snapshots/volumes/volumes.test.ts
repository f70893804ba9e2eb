/** Volumes in sandboxes on the real Docker daemon: shared, with a quota, over pause, fork and crashes of the agent. */

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Started, StartRequest } from "../../../shared/agent-api/routes.ts";
import { containers, ORCHESTRATOR_TOKEN, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";
import { command } from "../../support/sandbox/envd-commands.ts";

const SLOW = { timeout: 90_000, interval: 100 };
const user = { user: "user" };

let agent: RealAgent;
let volumeId: string;
beforeAll(async () => {
  agent = await realAgent({ SVC_FROZEN_SECONDS: "0" });
});
afterAll(() => agent.close());
beforeEach(async () => {
  volumeId = randomUUID();
  await agent.call.makeVolume({ params: { volumeId }, body: { sizeMb: 64 } });
});

const shell = async ({ address }: Started, text: string) => (await command(address, text, user)).output;
const ask = (executionId: string) => ({ params: { executionId }, body: { snapshotId: randomUUID(), memory: true } });
const mounted = (more: Partial<StartRequest> = {}) => agent.start({ volumes: [{ volumeId, path: "/data" }], ...more });

async function content(method: string, route: string, query: Record<string, string>, body?: string): Promise<Response> {
  const url = `${agent.url}/v1/volumes/${volumeId}/content/${route}?${new URLSearchParams(query).toString()}`;
  const headers = { authorization: `Bearer ${ORCHESTRATOR_TOKEN}`, "content-type": "application/octet-stream" };
  return fetch(url, { method, headers, ...(body === undefined ? {} : { body }) });
}

const mounts = async () => (await readFile("/proc/mounts", "utf8")).includes(volumeId);

test("two sandboxes use SQLite and git in one volume, its quota holds, and it outlives both", async () => {
  const [one, two] = await Promise.all([mounted(), mounted()]);
  const insert = (by: string) =>
    `python3 -c "
import sqlite3
db = sqlite3.connect('/data/shared.db', timeout=30)
for i in range(50):
  with db: db.execute('insert into t values (?)', ('${by}',))
print(db.execute('pragma integrity_check').fetchone()[0])"`;
  // Two programs at once cannot make the journal: SQLite does not wait for that lock.
  const made = `python3 -c "
import sqlite3
db = sqlite3.connect('/data/shared.db')
db.execute('create table t (v text)')
print(db.execute('pragma journal_mode=wal').fetchone()[0])"`;
  expect(await shell(one, made)).toBe("wal");
  expect(await Promise.all([shell(one, insert("one")), shell(two, insert("two"))])).toEqual(["ok", "ok"]);
  const count = `python3 -c "import sqlite3; print(sqlite3.connect('/data/shared.db').execute('select count(*) from t').fetchone()[0])"`;
  expect(await shell(one, count)).toBe("100");
  const commit =
    "cd /data/repo && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline | wc -l";
  expect(await shell(one, `git init -q /data/repo && ${commit}`)).toBe("1");
  expect(await shell(two, commit)).toBe("2");

  expect(await shell(one, "df -BM --output=size /data | tail -1 | tr -d 'M '")).toBe("64");
  const usedBytes = expect.any(Number) as number;
  expect(await agent.call.listVolumes({})).toContainEqual({ volumeId, sizeMb: 64, usedBytes });
  expect(await shell(one, "dd if=/dev/zero of=/data/full bs=64k 2>&1 | grep -o 'No space left on device'")).toBe(
    "No space left on device",
  );
  expect((await content("PUT", "file", { path: "more" }, "x".repeat(1_000_000))).status).toBe(507);
  expect(await shell(two, "rm /data/full && echo well")).toBe("well");
  await Promise.all([agent.stop(one.executionId), agent.stop(two.executionId)]);
  await expect.poll(containers, SLOW).toEqual([]);

  const third = await mounted();
  expect(await shell(third, count)).toBe("100");
  expect(await (await content("GET", "dir", { path: "" })).json()).toContainEqual(
    expect.objectContaining({ name: "repo", type: "directory", uid: 1000 }),
  );
  await agent.stop(third.executionId);
  await agent.call.deleteVolume({ params: { volumeId } });
  expect(await mounts()).toBe(false);
});

test("open files survive a pause and a fork, also when another sandbox has changed them, and all share one volume", async () => {
  const writer = `python3 -c "
import time
log = open('/data/log', 'a+', buffering=1)
state = open('/data/state', 'r+' if __import__('os').path.exists('/data/state') else 'w+')
n = 0
while True:
  n += 1
  log.write('x\\n'); state.seek(0); state.write(str(n)); state.flush(); time.sleep(0.05)" >/dev/null 2>&1 &`;
  const one = await mounted();
  const other = await mounted();
  await shell(one, `${writer} echo started`);
  const lines = async (sandbox: Started) => Number(await shell(sandbox, "wc -l < /data/log"));
  await expect.poll(() => lines(other), SLOW).toBeGreaterThan(0);

  const { snapshotId } = await agent.call.pauseExecution(ask(one.executionId));
  // Nothing of it runs any more: it is restored from the disk.
  const running = async () => (await containers()).filter(({ state }) => state === "running").length;
  await expect.poll(running, SLOW).toBe(1);
  const before = await lines(other);
  await shell(other, "echo more >> /data/log; echo longer-than-before >> /data/state");
  const origin = { is: "paused" as const, snapshotId, memory: true };
  const again = await mounted({ sandboxId: one.sandboxId, origin });
  expect(again.restored).toBe("memory");
  await expect.poll(() => lines(other), SLOW).toBeGreaterThan(before + 1);

  const checkpoint = await agent.call.checkpointExecution(ask(again.executionId));
  const copy = await mounted({ origin: { is: "snapshot", snapshotId: checkpoint.snapshotId, memory: true } });
  expect(copy.restored).toBe("memory");
  await shell(copy, "echo fork > /data/by-fork");
  expect([await shell(again, "cat /data/by-fork"), await shell(copy, "pgrep -c python3")]).toEqual(["fork", "1"]);
  await agent.call.deleteSnapshot({ params: { snapshotId: checkpoint.snapshotId } });
  for (const { executionId } of [again, other, copy]) await agent.stop(executionId);
  await agent.call.deleteVolume({ params: { volumeId } });
});

test("a killed agent leaves volumes mounted and working, and a volume that is unmounted comes back when it is used", async () => {
  const one = await mounted();
  await shell(one, "echo kept > /data/file");
  await agent.crash();
  await agent.launch();
  expect(await shell(one, "echo more >> /data/file && cat /data/file")).toBe("kept\nmore");
  expect(await (await content("GET", "file", { path: "file" })).text()).toBe("kept\nmore\n");
  await agent.stop(one.executionId);
  await agent.call.deleteVolume({ params: { volumeId } });
  await agent.call.deleteVolume({ params: { volumeId } });
  const missing = await mounted().catch((error: unknown) => error);
  expect(missing).toMatchObject({ code: "not_found" });
  await expect.poll(containers, SLOW).toEqual([]);
});
