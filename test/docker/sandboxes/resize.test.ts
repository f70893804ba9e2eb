/** Sandboxes of another size than their pool on the real Docker daemon: the kernel, the agent and Docker agree on it. */

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Resources, Started } from "../../../shared/agent-api/routes.ts";
import { BASE, inside, RESOURCES, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";

const run = promisify(execFile);
const SLOW = { timeout: 90_000, interval: 50 };
const MIB = 2 ** 20;
const LARGE = { ...RESOURCES, cpuCount: 2, memoryMB: 512 };
const SMALL = { ...RESOURCES, memoryMB: 128 };

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent();
  agent.setPools([{ build: BASE, resources: RESOURCES, size: 2 }]);
});
afterAll(() => agent.close());

const claimed = async (resources: Resources): Promise<Started> => {
  await expect.poll(() => agent.heartbeats.at(-1)?.load.pools[0]?.ready, SLOW).toBeGreaterThan(0);
  const started = await agent.start({ resources });
  expect(started.warm).toBe(true);
  return started;
};
/** What envd reads of its control group. */
const seenInside = async ({ address }: Started) => {
  const headers = { "X-Access-Token": "a".repeat(32) };
  const response = await fetch(`http://${address}:49983/metrics`, { headers });
  const { cpu_count: cpus, mem_total: memory } = (await response.json()) as { cpu_count: number; mem_total: number };
  return { cpus, memory };
};
const inDocker = async ({ sandboxId }: Started) => {
  const format = "{{.HostConfig.Memory}} {{.HostConfig.MemorySwap}} {{.HostConfig.NanoCpus}}";
  return (
    await run("docker", ["inspect", "-f", format, `svc-${sandboxId}`]).catch(() => ({ stdout: "" }))
  ).stdout.trim();
};
/** Allocates memory in a process of its own; 0 when the kernel let it. */
const allocate = async ({ sandboxId }: Started, megabytes: number) =>
  (await inside(sandboxId, "root", "python3", "-c", `bytearray(b'1') * (${megabytes} << 20)`)).code;

test("a larger sandbox can use what it asked for at once, and still after a crash of the agent and an update by hand", async () => {
  const started = await claimed(LARGE);
  const size = { cpus: 2, memory: 512 * MIB };
  expect(await seenInside(started)).toEqual(size);
  expect(await allocate(started, 300)).toBe(0);
  await expect.poll(() => inDocker(started), SLOW).toBe(`${512 * MIB} ${512 * MIB} 2000000000`);
  await agent.crash();
  await agent.launch();
  await run("docker", ["update", "--cpu-shares", "512", `svc-${started.sandboxId}`]);
  expect(await seenInside(started)).toEqual(size);
  const sampled = { cpuCount: 2, memTotal: 512 * MIB };
  const { executionId } = started;
  await expect
    .poll(async () => (await agent.call.executionMetrics({ params: { executionId } })).at(-1), SLOW)
    .toMatchObject(sampled);
  const seen = agent.heartbeats.length;
  await expect.poll(() => agent.heartbeats.length, SLOW).toBeGreaterThan(seen + 1);
  expect(agent.heartbeats.at(-1)?.load).toMatchObject({ allocatedCpu: 2, allocatedMemoryBytes: 512 * MIB });
  await agent.stop(executionId);
});

test("a smaller sandbox cannot use more than it asked for, and goes on", async () => {
  const started = await claimed(SMALL);
  expect(await seenInside(started)).toEqual({ cpus: 1, memory: 128 * MIB });
  expect(await allocate(started, 200)).not.toBe(0);
  expect(await allocate(started, 20)).toBe(0);
  await agent.stop(started.executionId);
});
