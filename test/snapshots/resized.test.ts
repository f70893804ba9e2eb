/** Memory of a sandbox that is larger than its pool's containers, on the real Docker daemon: resumed, and copied. */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BASE, containers, RESOURCES, type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const run = promisify(execFile);
const SLOW = { timeout: 90_000, interval: 50 };
const POOLED = { ...RESOURCES, memoryMB: 128 };
const LARGE = { ...RESOURCES, cpuCount: 2, memoryMB: 384 };
const HOLD = `python3 -c "
import time
data = bytearray(b'1') * (160 << 20)
open('/tmp/held', 'w').write('held')
while True: time.sleep(1)
"`;

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent({ SVC_FROZEN_SECONDS: "0" });
  agent.setPools([{ build: BASE, resources: POOLED, size: 1 }]);
});
afterAll(() => agent.close());

const total = async (address: string) => {
  const response = await fetch(`http://${address}:49983/metrics`, { headers: { "X-Access-Token": "a".repeat(32) } });
  return ((await response.json()) as { mem_total: number }).mem_total / 2 ** 20;
};

test("more memory than a pooled container has is restored in the sandbox's own size, and copied into any that it fits", async () => {
  await expect.poll(() => agent.heartbeats.at(-1)?.load.pools[0]?.ready, SLOW).toBe(1);
  const started = await agent.start({ resources: LARGE });
  expect(started.warm).toBe(true);
  const pid = await background(started.address, HOLD);
  await expect.poll(async () => (await command(started.address, "cat /tmp/held")).output, SLOW).toBe("held");

  const copied = randomUUID();
  const { executionId, sandboxId } = started;
  const { memoryBytes } = await agent.call.checkpointExecution({
    params: { executionId },
    body: { snapshotId: copied, memory: true },
  });
  const origin = { is: "snapshot", snapshotId: copied, memory: true } as const;
  const least = Math.ceil(memoryBytes / 2 ** 20) + 32;
  await expect(agent.start({ origin, resources: { ...LARGE, memoryMB: least - 1 } })).rejects.toMatchObject({
    code: "failed_precondition",
  });
  const copy = await agent.start({ origin, resources: { ...LARGE, memoryMB: least } });
  expect([copy.restored, await total(copy.address)]).toEqual(["memory", least]);
  expect((await command(copy.address, `kill -0 ${pid} && echo there`)).output).toBe("there");
  await agent.stop(copy.executionId);

  const snapshotId = randomUUID();
  await agent.call.pauseExecution({ params: { executionId }, body: { snapshotId, memory: true } });
  const state = async () => (await containers()).find(({ name }) => name === `svc-${sandboxId}`)?.state;
  await expect.poll(state, SLOW).toBe("exited");
  // As if the agent had been killed before it gave Docker the new size.
  await run("docker", ["update", "--memory", "128m", "--memory-swap", "128m", "--cpus", "1", `svc-${sandboxId}`]);
  const resumed = await agent.start({
    sandboxId,
    resources: LARGE,
    origin: { is: "paused", snapshotId, memory: true },
  });
  expect([resumed.restored, await total(resumed.address)]).toEqual(["memory", 384]);
  expect((await command(resumed.address, `kill -0 ${pid} && echo there`)).output).toBe("there");
  await agent.stop(resumed.executionId);
});
