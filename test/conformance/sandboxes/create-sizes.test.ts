/** Sandboxes whose create names a size: inside, in every read, after a resume, and in their copies. */

import { Sandbox } from "e2b";
import { expect, onTestFinished, test } from "vitest";
import type { SandboxDetail, SandboxMetric, StartResult } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import { api, openPlatform } from "../../support/platform/platform.ts";

const platform = openPlatform();
const SIZE = { cpuCount: 1, memoryMB: 640 };

async function created(body: object, version = "/v2"): Promise<Sandbox> {
  const reply = await api(platform, "POST", `${version}/sandboxes`, {
    body: { templateID: "base", timeout: 600, ...body },
  });
  expect(reply.status, reply.text).toBe(201);
  const { sandboxID } = reply.json as { sandboxID: string };
  onTestFinished(async () => void (await Sandbox.kill(sandboxID)));
  return Sandbox.connect(sandboxID);
}

/** The limits that the kernel enforces, as programs of either version of control groups find them: cores and MiB. */
async function enforced(sandbox: Sandbox): Promise<object> {
  const files = "cd /sys/fs/cgroup; cat cpu.max memory.max 2>/dev/null || ";
  const older = "cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us memory/memory.limit_in_bytes";
  const { stdout } = await sandbox.commands.run(files + older);
  const [quota = 0, period = 0, bytes = 0] = stdout.trim().split(/\s+/).map(Number);
  return { cpuCount: quota / period, memoryMB: bytes / 2 ** 20 };
}

const read = async (id: string) => {
  const { cpuCount, memoryMB } = (await api(platform, "GET", `/sandboxes/${id}`)).json as SandboxDetail;
  return { cpuCount, memoryMB };
};

test("the kernel enforces the size that a create names, reads and metrics show it, and it stays through a pause", async () => {
  const sandbox = await created(SIZE);
  const { sandboxId } = sandbox;
  expect(await enforced(sandbox)).toEqual(SIZE);
  expect(await read(sandboxId)).toEqual(SIZE);
  const info = await sandbox.getInfo();
  expect({ cpuCount: info.cpuCount, memoryMB: info.memoryMB }).toEqual(SIZE);
  const samples = async () =>
    ((await api(platform, "GET", `/sandboxes/${sandboxId}/metrics`)).json as SandboxMetric[]).at(-1);
  await expect.poll(samples).toMatchObject({ cpuCount: 1, memTotal: 640 * 2 ** 20 });

  const [forked] = await sandbox.fork({ count: 1, timeoutMs: 600_000 });
  if (!(forked instanceof Sandbox)) throw new Error("the fork gave no sandbox", { cause: forked });
  onTestFinished(async () => void (await forked.kill()));
  expect([await enforced(forked), await read(forked.sandboxId)]).toEqual([SIZE, SIZE]);

  await sandbox.pause();
  expect(await read(sandboxId)).toEqual(SIZE);
  const again = await Sandbox.connect(sandboxId);
  expect([await enforced(again), await read(sandboxId)]).toEqual([SIZE, SIZE]);
});

test("a sandbox of a snapshot has its size, another one where its memory fits, or none of its memory", async () => {
  const source = await created(SIZE, "");
  const sleeps = async (one: Sandbox) => (await one.commands.run("ls mine; pgrep -c sleep || true")).stdout;
  await source.commands.run("touch mine; sleep 3000 & echo $!", { background: true });
  await expect.poll(() => sleeps(source)).toBe("mine\n1\n");
  const { snapshotId } = await source.createSnapshot();
  onTestFinished(async () => void (await Sandbox.deleteSnapshot(snapshotId)));
  const other = { cpuCount: 2, memoryMB: 512 };

  const larger = await created({ templateID: snapshotId, ...other });
  expect([await enforced(larger), await read(larger.sandboxId)]).toEqual([other, other]);
  expect(await sleeps(larger)).toBe("mine\n1\n");
  const cold = await created({ templateID: snapshotId, memory: false });
  expect([await enforced(cold), await sleeps(cold)]).toEqual([SIZE, "mine\n0\n"]);
});

test.each([
  [{ cpuCount: 33 }, 403, "ask for at most 32"],
  [{ memoryMB: 65_537 }, 403, "ask for at most 65536 MiB"],
  [{ memoryMB: 127 }, 400, "memoryMB"],
  [{ count: 101 }, 400, "count"],
])("a create with %j is %i, with the way out", async (body, status, message) => {
  const reply = await api(platform, "POST", "/v2/sandboxes", { body: { templateID: "base", ...body } });
  expect([reply.status, reply.text]).toEqual([status, expect.stringContaining(message)]);
});

test("a create of four starts four sandboxes, each with commands, files and a name of its own", async () => {
  const reply = await api(platform, "POST", "/v2/sandboxes", { body: { templateID: "base", timeout: 600, count: 4 } });
  expect(reply.status, reply.text).toBe(201);
  const ids = (reply.json as StartResult[]).map(({ sandbox }) => sandbox?.sandboxID ?? "");
  onTestFinished(async () => void (await Promise.all(ids.map((id) => Sandbox.kill(id)))));
  const said = await Promise.all(
    ids.map(async (id) => {
      const sandbox = await Sandbox.connect(id);
      await sandbox.files.write("own.txt", id);
      return (await sandbox.commands.run('echo "$E2B_SANDBOX_ID $(cat own.txt)"')).stdout.trim();
    }),
  );
  expect(new Set(ids).size).toBe(4);
  expect(said).toEqual(ids.map((id) => `${id} ${id}`));
});
