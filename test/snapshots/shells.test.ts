/** Copies of memory that are restored into shells, containers of Docker made ahead: what a copy is, how it ends, what is left. */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { containers, NODE_ID, RESOURCES, type RealAgent, RUN_DIR, realAgent } from "../support/agent/real-agent.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const run = promisify(execFile);
const SLOW = { timeout: 60_000, interval: 50 };
const COUNTER = "i=0; while :; do i=$((i+1)); echo $i > /tmp/count.new; mv /tmp/count.new /tmp/count; sleep 0.05; done";
const count = async (address: string) => Number((await command(address, "cat /tmp/count")).output);

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent({ SVC_FROZEN_SECONDS: "0" });
});
afterAll(() => agent.close());

/** Containers of the node, also those that wait: name and id. */
async function all(): Promise<{ name: string; id: string }[]> {
  const format = "{{.Names}} {{.ID}}";
  const args = ["ps", "-a", "--no-trunc", "--filter", `label=svc.node=${NODE_ID}`, "--format", format];
  const lines = (await run("docker", args)).stdout.split("\n").filter(Boolean);
  return lines.map((line) => ({ name: line.split(" ")[0] ?? "", id: line.split(" ")[1] ?? "" }));
}

const annotation = (id: string, name: string) => join(RUN_DIR, "containers", id, name);
const shells = async () =>
  (await all()).filter(({ name, id }) => name.startsWith("svc-shell-") && existsSync(annotation(id, "waiting")));
const idOf = async ({ sandboxId }: Pick<Started, "sandboxId">) =>
  (await all()).find(({ name }) => name === `svc-${sandboxId}`)?.id ?? "";

async function counting(resources = RESOURCES): Promise<Started> {
  const started = await agent.start({ resources });
  await background(started.address, COUNTER);
  await expect.poll(() => count(started.address)).toBeGreaterThan(1);
  return started;
}

const checkpoint = async ({ executionId }: Pick<Started, "executionId">) => {
  const body = { snapshotId: randomUUID(), memory: true, durable: false };
  return (await agent.call.checkpointExecution({ params: { executionId }, body })).snapshotId;
};
const copyOf = (snapshotId: string, resources = RESOURCES) =>
  agent.start({ resources, origin: { is: "snapshot", snapshotId, memory: true } });

async function someWait(least = 1): Promise<void> {
  await expect.poll(async () => (await shells()).length, SLOW).toBeGreaterThanOrEqual(least);
}

test("copies go on in shells as sandboxes of their own, and are paused, resumed and copied like any other", async () => {
  const original = await counting();
  const snapshotId = await checkpoint(original);
  await someWait();
  const copy = await copyOf(snapshotId);
  expect(copy.restored).toBe("memory");
  const id = await idOf(copy);
  expect(existsSync(annotation(id, "process"))).toBe(true);
  const at = await count(copy.address);
  await expect.poll(() => count(copy.address)).toBeGreaterThan(at);
  expect(copy.address).not.toBe(original.address);
  await command(copy.address, "echo own > /tmp/own");
  expect((await command(original.address, "cat /tmp/own")).code).toBe(1);

  const again = await checkpoint(copy);
  await someWait();
  const grandchild = await copyOf(again);
  expect((await command(grandchild.address, "cat /tmp/own")).output).toBe("own");

  const { snapshotId: paused } = await agent.call.pauseExecution({
    params: { executionId: copy.executionId },
    body: { snapshotId: randomUUID(), memory: true },
  });
  await expect.poll(async () => existsSync(annotation(id, "process")), SLOW).toBe(false);
  const origin = { is: "paused" as const, snapshotId: paused, memory: true };
  const resumed = await agent.start({ sandboxId: copy.sandboxId, origin });
  expect(resumed.restored).toBe("memory");
  expect((await command(resumed.address, "cat /tmp/own")).output).toBe("own");

  await Promise.all([original, resumed, grandchild].map(({ executionId }) => agent.stop(executionId)));
  for (const one of [snapshotId, again]) await agent.call.deleteSnapshot({ params: { snapshotId: one } });
  await expect.poll(containers, SLOW).toEqual([]);
});

test("as many wait as were asked for together, and each is used once", async () => {
  const original = await counting();
  const snapshotId = await checkpoint(original);
  const first = await Promise.all([0, 1, 2].map(() => copyOf(snapshotId)));
  await someWait(3);
  const waiting = new Set((await shells()).map(({ id }) => id));
  const second = await Promise.all([0, 1, 2].map(() => copyOf(snapshotId)));
  const used = await Promise.all(second.map(idOf));
  expect(used.filter((id) => waiting.has(id))).toHaveLength(3);
  expect(new Set(used).size).toBe(3);
  await Promise.all([original, ...first, ...second].map(({ executionId }) => agent.stop(executionId)));
  await agent.call.deleteSnapshot({ params: { snapshotId } });
  await expect.poll(containers, SLOW).toEqual([]);
});

test("a copy in a shell that ends by itself, or for memory, is reported with its reason", async () => {
  const original = await counting();
  const snapshotId = await checkpoint(original);
  await someWait();
  const one = await copyOf(snapshotId);
  await someWait();
  const other = await copyOf(snapshotId);
  const [first] = (await readFile(annotation(await idOf(one), "process"), "utf8")).split("\n");
  process.kill(Number(first), "SIGKILL");
  const exitOf = ({ executionId }: Started) => agent.exits.find((exit) => exit.executionId === executionId);
  await expect.poll(() => exitOf(one), SLOW).toMatchObject({ reason: "exited", exitCode: 137 });
  const envd = "kill -9 $(pgrep -f envd.js) ";
  await command(other.address, `(sleep 0.2; tail -c 400m /dev/zero | cat >/dev/null; ${envd}) >/dev/null 2>&1 &`, {
    user: "root",
  });
  await expect.poll(() => exitOf(other)?.reason, SLOW).toMatch(/exited|out_of_memory/);
  await agent.stop(original.executionId);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
  await expect.poll(containers, SLOW).toEqual([]);
});

test("a shell that somebody has ended is not used: the copy starts all the same", async () => {
  const original = await counting();
  const snapshotId = await checkpoint(original);
  await someWait();
  for (const { id } of await shells()) await run("docker", ["kill", id]);
  await expect.poll(shells, SLOW).toEqual([]);
  const copy = await copyOf(snapshotId);
  expect(copy.restored).toBe("memory");
  await Promise.all([original, copy].map(({ executionId }) => agent.stop(executionId)));
  await agent.call.deleteSnapshot({ params: { snapshotId } });
  await expect.poll(containers, SLOW).toEqual([]);
});

test("shells of a killed agent are removed by the next one, not used", async () => {
  const original = await counting();
  const snapshotId = await checkpoint(original);
  await someWait();
  const before = (await shells()).map(({ id }) => id);
  await agent.crash();
  await agent.launch();
  await expect.poll(async () => (await all()).filter(({ id }) => before.includes(id)), SLOW).toEqual([]);
  await agent.stop(original.executionId);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
  await expect.poll(containers, SLOW).toEqual([]);
});
