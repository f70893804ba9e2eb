/** Pause and resume on the real engine: hot, out of memory on the disk, and from the disk alone. */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Started } from "../../shared/agent-api.ts";
import { background, command } from "../support/envd-commands.ts";
import { containers, type RealAgent, realAgent } from "../support/real-agent.ts";

const SLOW = { timeout: 30_000, interval: 100 };
// Counts in memory and writes down how far it is.
const COUNTER = "i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 0.05; done";
const HOLD = `python3 -c "
import hashlib, os, time
data = os.urandom(64 << 20)
while True:
    open('/tmp/hash.new', 'w').write(hashlib.sha256(data).hexdigest())
    os.rename('/tmp/hash.new', '/tmp/hash')
    time.sleep(0.2)
"`;

const count = async (address: string) => Number((await command(address, "cat /tmp/count")).output);

describe("pause and resume", () => {
  let agent: RealAgent;
  beforeAll(async () => {
    agent = await realAgent({ SVC_HOT_SECONDS: "3600" });
  });
  afterAll(() => agent.close());

  const pause = (executionId: string, memory = true, snapshotId: string = randomUUID()) =>
    agent.call.pauseExecution({ params: { executionId }, body: { snapshotId, memory } });
  const resume = ({ sandboxId }: Started, snapshotId: string, memory = true) =>
    agent.start({ sandboxId, origin: { is: "paused", snapshotId, memory } });
  const busy = async (started: Started) => {
    const { address } = started;
    const pid = await background(address, COUNTER);
    await background(address, HOLD);
    await background(address, "python3 -m http.server 8000");
    await command(address, "head -c 1000000 /dev/urandom > ~/file; head -c 1000000 /dev/urandom > /dev/shm/file");
    await expect.poll(() => count(address)).toBeGreaterThan(3);
    await expect.poll(async () => (await command(address, "cat /tmp/hash")).output).toHaveLength(64);
    const sums = () => command(address, "sha256sum ~/file /dev/shm/file; cat /tmp/hash");
    return { pid, sums: await sums() };
  };

  test("hot and durable, over and over: processes, memory and files are there again, and time stood still", async () => {
    let started = await agent.start();
    const { pid, sums } = await busy(started);
    for (const round of ["hot", "memory", "hot", "memory"]) {
      const before = await count(started.address);
      const begun = performance.now();
      const captured = await pause(started.executionId);
      const paused = performance.now();
      expect(captured).toMatchObject({ memory: true, sandboxId: started.sandboxId });
      expect(captured.memoryBytes).toBeGreaterThan(60_000_000);
      if (round === "memory") await agent.drop();
      const again = performance.now();
      started = await resume(started, captured.snapshotId);
      console.log(round, "pause", paused - begun, "resume", performance.now() - again);
      expect(started.restored).toBe(round);
      const after = await count(started.address);
      expect(after - before).toBeLessThan(60);
      await expect.poll(() => count(started.address)).toBeGreaterThan(after);
      expect((await command(started.address, `cat /proc/${pid}/cmdline | tr '\\0' ' '`)).output).toContain("while");
      const { address } = started;
      expect(await command(address, "sleep 0.5; sha256sum ~/file /dev/shm/file; cat /tmp/hash")).toEqual(sums);
      expect((await fetch(`http://${address}:8000/`)).status).toBe(200);
    }
    await agent.stop(started.executionId);
    await expect.poll(containers, SLOW).toEqual([]);
  });
});

describe("checkpoints", () => {
  let agent: RealAgent;
  beforeAll(async () => {
    agent = await realAgent();
  });
  afterAll(() => agent.close());

  const checkpoint = (executionId: string, memory = true, snapshotId: string = randomUUID()) =>
    agent.call.checkpointExecution({ params: { executionId }, body: { snapshotId, memory } });
  const copy = (snapshotId: string, memory = true) => agent.start({ origin: { is: "snapshot", snapshotId, memory } });

  test("the original goes on, and copies have its memory and files, but nothing of its identity", async () => {
    const source = await agent.start();
    const pid = await background(source.address, COUNTER);
    await command(source.address, "echo here > ~/file");
    await expect.poll(() => count(source.address)).toBeGreaterThan(3);
    const begun = performance.now();
    const captured = await checkpoint(source.executionId);
    const taken = performance.now();
    const copies = await Promise.all([copy(captured.snapshotId), copy(captured.snapshotId), copy(captured.snapshotId)]);
    console.log("checkpoint", taken - begun, "three copies", performance.now() - taken);
    for (const started of copies) {
      expect(started.restored).toBe("memory");
      const { address } = started;
      expect((await command(address, `cat ~/file /proc/${pid}/comm`)).output).toBe("here\nbash");
      const at = await count(address);
      await expect.poll(() => count(address)).toBeGreaterThan(at);
    }
    const at = await count(source.address);
    await expect.poll(() => count(source.address)).toBeGreaterThan(at);
    const ids = await Promise.all(
      copies.map(async ({ address }) => (await command(address, "echo $SVC_SANDBOX_ID")).output),
    );
    expect(ids).toEqual(copies.map(({ sandboxId }) => sandboxId));
    const cold = await copy(captured.snapshotId, false);
    expect(cold.restored).toBe("disk");
    expect((await command(cold.address, "cat ~/file; pgrep -c sleep")).output).toBe("here\n0");
    await Promise.all([source, cold, ...copies].map(({ executionId }) => agent.stop(executionId)));
    const late = await copy(captured.snapshotId);
    await agent.call.deleteSnapshot({ params: { snapshotId: captured.snapshotId } });
    await expect(copy(captured.snapshotId)).rejects.toMatchObject({ code: "snapshot_files_missing" });
    expect((await command(late.address, "cat ~/file")).output).toBe("here");
    await agent.stop(late.executionId);
    await expect.poll(containers, SLOW).toEqual([]);
  });
});
