/** The checkpoint of a fork and its copies: containers that are made while the source is stored, and memory that is not hashed. */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdir, utimes } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Started } from "../../../shared/agent-api/routes.ts";
import { containers, type RealAgent, RUN_DIR, realAgent } from "../../support/agent/real-agent.ts";
import { background, command } from "../../support/sandbox/envd-commands.ts";

const run = promisify(execFile);
const SLOW = { timeout: 90_000, interval: 100 };
const COUNTER = "i=0; while :; do i=$((i+1)); echo $i > /tmp/count.new; mv /tmp/count.new /tmp/count; sleep 0.05; done";
const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent({ SVC_HEARTBEAT_EVERY_MS: "200" });
});
afterAll(() => agent.close());

const count = async (address: string) => Number((await command(address, "cat /tmp/count")).output);
const countsOn = async ({ address }: Started) => {
  const at = await count(address);
  await expect.poll(() => count(address)).toBeGreaterThan(at);
};
const copyOf = (snapshotId: string) => agent.start({ origin: { is: "snapshot", snapshotId, memory: true } });
const ask = ({ executionId }: Started, copies: number, snapshotId = randomUUID()) => ({
  params: { executionId },
  body: { snapshotId, memory: true, durable: false, copies },
});

/** Starts that wait for their memory. */
const waiting = () =>
  run("pgrep", ["-fc", `svc-await ${RUN_DIR}/containers/`]).then(
    ({ stdout }) => Number(stdout),
    () => 0,
  );

async function counting(): Promise<Started> {
  const started = await agent.start();
  await background(started.address, COUNTER);
  await expect.poll(() => count(started.address)).toBeGreaterThan(1);
  return started;
}

async function nothingLeft(): Promise<void> {
  await expect.poll(containers, SLOW).toEqual([]);
  await expect.poll(async () => readdir(agent.snapshots), SLOW).toEqual([]);
  await expect.poll(() => readdir(join(agent.disks, "stored")).catch(() => []), SLOW).toEqual([]);
}

test("copies that start at once count on each by itself, and the containers that were made ahead are theirs or gone", async () => {
  const source = await counting();
  const { snapshotId, times = {} } = await agent.call.checkpointExecution(ask(source, 5));
  const parts = ["admit", "ahead", "disk", "dump", "envd", "finish", "freeze", "frozen", "images", "pages", "paths"];
  expect(Object.keys(times).sort()).toEqual(parts);
  const copies = await Promise.all([1, 2, 3].map(() => copyOf(snapshotId)));
  for (const one of [source, ...copies]) await countsOn(one);
  expect(copies.map(({ restored }) => restored)).toEqual(["memory", "memory", "memory"]);
  const names = copies.map(({ sandboxId }) => `svc-${sandboxId}`);
  await expect
    .poll(async () => (await containers()).map(({ name }) => name), SLOW)
    .toEqual(expect.arrayContaining(names));
  await agent.call.deleteSnapshot({ params: { snapshotId } });
  await expect.poll(containers, SLOW).toHaveLength(4);
  await Promise.all([source, ...copies].map(({ executionId }) => agent.stop(executionId)));
  await nothingLeft();
});

test("the container of a copy has its disk before the copy starts", async () => {
  const images = async () => (await readdir(agent.disks)).filter((name) => name.endsWith(".img")).length;
  const source = await counting();
  const { snapshotId } = await agent.call.checkpointExecution(ask(source, 1));
  await expect.poll(images, SLOW).toBe(2);
  const copy = await copyOf(snapshotId);
  for (const one of [source, copy]) await countsOn(one);
  expect(await images()).toBe(2);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
  await Promise.all([source, copy].map(({ executionId }) => agent.stop(executionId)));
  await nothingLeft();
});

test("starts of copies begin before they are asked for, and those that no copy takes are called off", async () => {
  const source = await counting();
  const { snapshotId } = await agent.call.checkpointExecution(ask(source, 3));
  await expect.poll(waiting, SLOW).toBe(3);
  const copy = await copyOf(snapshotId);
  expect([copy.restored, await waiting()]).toEqual(["memory", 2]);
  for (const one of [source, copy]) await countsOn(one);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
  await expect.poll(waiting, SLOW).toBe(0);
  await expect.poll(containers, SLOW).toHaveLength(2);
  await Promise.all([source, copy].map(({ executionId }) => agent.stop(executionId)));
  await nothingLeft();
});

test("kill -9 of the agent while starts of copies wait leaves the source, and neither starts nor containers beside it", async () => {
  const source = await counting();
  const { snapshotId } = await agent.call.checkpointExecution(ask(source, 3));
  await expect.poll(waiting, SLOW).toBe(3);
  await agent.crash();
  const begun = performance.now();
  await agent.launch();
  // Sooner than the starts would give up by themselves, for which Docker would keep the agent waiting.
  expect(performance.now() - begun).toBeLessThan(30_000);
  await expect.poll(waiting, { timeout: 15_000, interval: 50 }).toBe(0);
  await expect.poll(containers, SLOW).toHaveLength(1);
  await countsOn(source);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
  await agent.stop(source.executionId);
  await nothingLeft();
});

test("a dump that changes the source's disk leaves no container with the disk of before", async () => {
  const source = await agent.start();
  // The open file has lost its name and has another one, so the dump gives it a third.
  await background(source.address, `echo kept > /tmp/a; ln /tmp/a /tmp/b; exec 3</tmp/a; rm /tmp/a; ${COUNTER}`);
  await expect.poll(() => count(source.address)).toBeGreaterThan(1);
  const { snapshotId } = await agent.call.checkpointExecution(ask(source, 2));
  await expect.poll(containers, SLOW).toHaveLength(1);
  const copies = await Promise.all([1, 2].map(() => copyOf(snapshotId)));
  for (const one of [source, ...copies]) await countsOn(one);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
  await Promise.all([source, ...copies].map(({ executionId }) => agent.stop(executionId)));
  await nothingLeft();
});

test("a copy is refused when a file of the memory was touched, and a copy of the disk alone is not", async () => {
  const source = await counting();
  const { snapshotId } = await agent.call.checkpointExecution(ask(source, 1));
  const directory = join(agent.snapshots, snapshotId, "images");
  const pages = (await readdir(directory)).find((name) => name.startsWith("pages-")) ?? "";
  await utimes(join(directory, pages), 1, 1);
  await expect(copyOf(snapshotId)).rejects.toMatchObject({ code: "snapshot_corrupt" });
  const copy = await agent.start({ origin: { is: "snapshot", snapshotId, memory: false } });
  expect(copy.restored).toBe("disk");
  await countsOn(source);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
  await Promise.all([source, copy].map(({ executionId }) => agent.stop(executionId)));
  await nothingLeft();
});

test.each([5, 120, 240, 400])(
  "kill -9 of the agent %i ms into the checkpoint of a fork leaves the source running, and no container beside it",
  async (ms) => {
    const source = await counting();
    const asked = ask(source, 3);
    const { snapshotId } = asked.body;
    const taking = agent.call.checkpointExecution(asked).catch(() => undefined);
    await after(ms);
    await agent.crash();
    await taking;
    await agent.launch();
    await countsOn(source);
    await expect.poll(containers, SLOW).toHaveLength(1);
    // The orchestrator gives up a fork whose answer it has not got.
    await agent.call.deleteSnapshot({ params: { snapshotId } });
    const again = await agent.call.checkpointExecution(ask(source, 1));
    const copy = await copyOf(again.snapshotId);
    await countsOn(copy);
    await agent.call.deleteSnapshot({ params: { snapshotId: again.snapshotId } });
    await Promise.all([source, copy].map(({ executionId }) => agent.stop(executionId)));
    await nothingLeft();
  },
);

test.each([60, 200])(
  "kill -9 of the agent %i ms into the start of a copy leaves the copy running or nothing of it",
  async (ms) => {
    const source = await counting();
    const { snapshotId } = await agent.call.checkpointExecution(ask(source, 2));
    const executionId = randomUUID();
    const origin = { is: "snapshot" as const, snapshotId, memory: true };
    const starting = agent.startAs(executionId, { origin }).catch(() => undefined);
    await after(ms);
    await agent.crash();
    await starting;
    await agent.launch();
    await countsOn(source);
    const runs = async () =>
      agent.heartbeats.at(-1)?.executions.some((one) => one.executionId === executionId) === true;
    const seen = agent.heartbeats.length;
    await expect.poll(() => agent.heartbeats.length, SLOW).toBeGreaterThan(seen + 1);
    await expect.poll(containers, SLOW).toHaveLength((await runs()) ? 2 : 1);
    await agent.call.deleteSnapshot({ params: { snapshotId } });
    await Promise.all([source.executionId, executionId].map((id) => agent.stop(id)));
    await nothingLeft();
  },
);
