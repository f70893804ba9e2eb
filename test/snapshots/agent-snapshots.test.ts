/** Snapshots when a part fails: a killed agent, a full disk, an absent orchestrator; and large snapshots. */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, readdir } from "node:fs/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { containers, type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const run = promisify(execFile);
const SLOW = { timeout: 90_000, interval: 100 };
const COUNTER = "i=0; while :; do i=$((i+1)); echo $i > /tmp/count.new; mv /tmp/count.new /tmp/count; sleep 0.05; done";
const count = async (address: string) => Number((await command(address, "cat /tmp/count")).output);
const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function images(snapshotId: string): Promise<string[]> {
  const { stdout } = await run("docker", ["images", "-q", "--filter", `reference=svc/*:${snapshotId}`]);
  return stdout.split("\n").filter((line) => line !== "");
}

async function counting(agent: RealAgent): Promise<Started> {
  const started = await agent.start();
  await background(started.address, COUNTER);
  await expect.poll(() => count(started.address)).toBeGreaterThan(1);
  return started;
}

describe("kill -9 of the agent", () => {
  let agent: RealAgent;
  beforeAll(async () => {
    agent = await realAgent({ SVC_FROZEN_SECONDS: "3600", SVC_HEARTBEAT_EVERY_MS: "200" });
  });
  afterAll(() => agent.close());

  const pauseIt = (executionId: string, snapshotId: string) =>
    agent.call.pauseExecution({ params: { executionId }, body: { snapshotId, memory: true } });
  const said = async () => {
    const seen = agent.heartbeats.length;
    await expect.poll(() => agent.heartbeats.length, SLOW).toBeGreaterThan(seen + 1);
    return agent.heartbeats.at(-1);
  };

  test.each([5, 40, 80, 120, 160, 200, 250, 300, 350, 400])(
    "%i ms into a pause leaves it running or paused, and never both",
    async (ms) => {
      const started = await counting(agent);
      const snapshotId = randomUUID();
      const pausing = pauseIt(started.executionId, snapshotId).catch(() => undefined);
      await after(ms);
      await agent.crash();
      await pausing;
      await agent.launch();
      const beat = await said();
      const runs = beat?.executions.some(({ executionId }) => executionId === started.executionId) === true;
      const stored = beat?.snapshots.some((one) => one.snapshotId === snapshotId) === true;
      console.log(`killed ${ms} ms into a pause: ${runs ? "running" : ""}${stored ? "paused" : ""}`);
      expect([runs, stored].filter(Boolean)).toHaveLength(1);
      // In both cases the same request finishes the pause.
      const taken = await pauseIt(started.executionId, snapshotId);
      const again = await agent.start({
        sandboxId: started.sandboxId,
        origin: { is: "paused", snapshotId: taken.snapshotId, memory: true },
      });
      const at = await count(again.address);
      await expect.poll(() => count(again.address)).toBeGreaterThan(at);
      await agent.stop(again.executionId);
      await agent.call.deleteSnapshot({ params: { snapshotId } });
      await expect.poll(containers, SLOW).toEqual([]);
      await expect.poll(() => readdir(agent.snapshots), SLOW).toEqual([]);
    },
  );

  test.each([5, 60, 120, 180, 240, 300, 400])(
    "%i ms into a resume from memory leaves it paused or running",
    async (ms) => {
      const started = await counting(agent);
      const { snapshotId } = await pauseIt(started.executionId, randomUUID());
      await agent.drop();
      const executionId = randomUUID();
      const origin = { is: "paused" as const, snapshotId, memory: true };
      const starting = agent.startAs(executionId, { sandboxId: started.sandboxId, origin }).catch(() => undefined);
      await after(ms);
      await agent.crash();
      await starting;
      await agent.launch();
      const beat = await said();
      const runs = beat?.executions.some((one) => one.executionId === executionId) === true;
      console.log(`killed ${ms} ms into a resume: ${runs ? "running" : "paused"}`);
      const again = await agent.startAs(executionId, { sandboxId: started.sandboxId, origin });
      const at = await count(again.address);
      await expect.poll(() => count(again.address)).toBeGreaterThan(at);
      await expect.poll(containers, SLOW).toHaveLength(1);
      await agent.stop(executionId);
      await agent.call.deleteSnapshot({ params: { snapshotId } });
      await expect.poll(containers, SLOW).toEqual([]);
    },
  );

  test.each([5, 60, 120, 180, 240])(
    "%i ms into a checkpoint leaves the original running and no half copy",
    async (ms) => {
      const started = await counting(agent);
      const snapshotId = randomUUID();
      const params = { executionId: started.executionId };
      const body = { snapshotId, memory: true };
      const taking = agent.call.checkpointExecution({ params, body }).catch(() => undefined);
      await after(ms);
      await agent.crash();
      await taking;
      await agent.launch();
      const at = await count(started.address);
      await expect.poll(() => count(started.address)).toBeGreaterThan(at);
      const stored = (await said())?.snapshots.some((one) => one.snapshotId === snapshotId) === true;
      console.log(`killed ${ms} ms into a checkpoint: ${stored ? "stored" : "not stored"}`);
      // The agent gives and takes names of images after its answers.
      await expect.poll(() => images(snapshotId), SLOW).toHaveLength(stored ? 1 : 0);
      await agent.call.checkpointExecution({ params, body });
      const copy = await agent.start({ origin: { is: "snapshot", snapshotId, memory: true } });
      expect(copy.restored).toBe("memory");
      await Promise.all([agent.stop(started.executionId), agent.stop(copy.executionId)]);
      await expect.poll(containers, SLOW).toEqual([]);
      await agent.call.deleteSnapshot({ params: { snapshotId } });
      await expect.poll(() => images(snapshotId), SLOW).toEqual([]);
    },
  );
});

describe("with a small disk", () => {
  const state = "/tmp/svc-small-disk";
  let agent: RealAgent;
  beforeAll(async () => {
    await mkdir(state, { recursive: true });
    await run("mount", ["-t", "tmpfs", "-o", "size=24m", "svc-test", state]);
    // The disk itself is full here; no reserve and no quota, which are shares of the disk, refuses first.
    agent = await realAgent({ SVC_STATE_DIR: state, SVC_DISK_RESERVE_MB: "0", SVC_SNAPSHOT_QUOTA_MB: "0" });
  });
  afterAll(async () => {
    await agent.close();
    await run("umount", [state]);
  });

  test("a sandbox whose memory does not fit continues to run, and the next small one is stored", async () => {
    const started = await agent.start();
    const pid = await background(
      started.address,
      "exec python3 -c 'import os,time; x=os.urandom(40<<20); time.sleep(1000)'",
    );
    const resident = async () =>
      Number((await command(started.address, `awk '/VmRSS/ {print $2}' /proc/${pid}/status`)).output);
    await expect.poll(resident, SLOW).toBeGreaterThan(40_000);
    const params = { executionId: started.executionId };
    const pausing = () => agent.call.pauseExecution({ params, body: { snapshotId: randomUUID(), memory: true } });
    await expect(pausing()).rejects.toMatchObject({ code: "no_space" });
    expect((await command(started.address, "echo runs")).output).toBe("runs");
    expect(await readdir(`${state}/snapshots`)).toEqual([]);
    await command(started.address, `kill ${pid}`);
    expect(await pausing()).toMatchObject({ memory: true });
  });
});

describe("while the orchestrator is away", () => {
  let agent: RealAgent;
  beforeAll(async () => {
    agent = await realAgent({ SVC_END_GRACE_MS: "1500" });
  });
  afterAll(() => agent.close());

  test("a sandbox that is to be paused at its end is paused by the agent, and that is reported", async () => {
    agent.setOrchestrator(false);
    const started = await agent.start({ endAt: Date.now() + 5_000, onTimeout: "pause" });
    await expect.poll(async () => readdir(agent.snapshots), SLOW).toHaveLength(1);
    agent.setOrchestrator(true);
    const stored = () => agent.heartbeats.at(-1)?.snapshots ?? [];
    await expect
      .poll(stored, SLOW)
      .toMatchObject([{ sandboxId: started.sandboxId, executionId: started.executionId, kind: "pause" }]);
    expect(agent.exits).toEqual([]);
    const [snapshot] = stored();
    const origin = { is: "paused" as const, snapshotId: snapshot?.snapshotId ?? "", memory: true };
    expect((await agent.start({ sandboxId: started.sandboxId, origin })).restored).toBe("frozen");
  });
});

describe("large memory", () => {
  let agent: RealAgent;
  beforeAll(async () => {
    agent = await realAgent();
  });
  afterAll(() => agent.close());

  test("comes back lazily, whole, and can be stored again", async () => {
    const resources = { cpuCount: 2, memoryMB: 1024, diskSizeMB: 1024 };
    let started = await agent.start({ resources });
    const hold = `import hashlib,os,signal,time
x=os.urandom(200<<20)
def told(*_): open('/tmp/hash','w').write(hashlib.sha256(x).hexdigest()+'\\n')
signal.signal(signal.SIGUSR1, told)
told()
while True: time.sleep(1)`;
    const pid = await background(started.address, `exec python3 -c "${hold}"`);
    const hash = async () => (await command(started.address, "cat /tmp/hash")).output;
    await expect.poll(hash, SLOW).toHaveLength(64);
    const before = await hash();
    for (let round = 0; round < 2; round++) {
      const params = { executionId: started.executionId };
      const begun = performance.now();
      const { snapshotId, memoryBytes } = await agent.call.pauseExecution({
        params,
        body: { snapshotId: randomUUID(), memory: true },
      });
      const paused = performance.now();
      await agent.drop();
      const resuming = performance.now();
      started = await agent.start({
        sandboxId: started.sandboxId,
        resources,
        origin: { is: "paused", snapshotId, memory: true },
      });
      console.log(
        `${memoryBytes >> 20} MiB: pause ${paused - begun} ms, lazy resume ${performance.now() - resuming} ms`,
      );
      expect(started.restored).toBe("memory");
      await command(started.address, `rm /tmp/hash; kill -USR1 ${pid}`);
      await expect.poll(hash, SLOW).toBe(before);
    }
    await agent.stop(started.executionId);
    await expect.poll(containers, SLOW).toEqual([]);
  });
});
