/** Rewinds on a real engine that take a copy which was made before: the same state as without one, and nothing is left of copies. */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Started } from "../../../shared/agent-api/routes.ts";
import { containers, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";
import {
  count,
  goesOn,
  isAtCheckpoint,
  outputOf,
  rewindOf,
  SLOW,
  withCheckpoint,
} from "../../support/sandbox/counter.ts";
import { killFrozen } from "../../support/sandbox/frozen-container.ts";

const run = promisify(execFile);
const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

let agent: RealAgent;
beforeAll(async () => {
  const settings = { SVC_FROZEN_SECONDS: "3600", SVC_HEARTBEAT_EVERY_MS: "200", SVC_REWIND_COPY_SECONDS: "600" };
  agent = await realAgent(settings);
});
afterAll(() => agent.close());

const rewind = (started: Started, snapshotId: string, executionId: string = randomUUID()) =>
  agent.startAs(executionId, rewindOf(started, snapshotId));

/** A sandbox that was rewound once, so that a copy waits for the next time; it has counted on, and has a file that the checkpoint has not. */
async function withCopy() {
  const { started: first, snapshotId, at } = await withCheckpoint(agent);
  const started = await rewind(first, snapshotId);
  await goesOn(started, at);
  await copyWaits();
  return { started, snapshotId, at };
}

/** The sandbox's container, and the copy, of which nothing runs. */
async function copyWaits(): Promise<void> {
  await expect.poll(containers, SLOW).toHaveLength(2);
  await expect.poll(frozenContainers, SLOW).toHaveLength(1);
}

async function frozenContainers(): Promise<string[]> {
  const states = await Promise.all((await containers()).map(({ name }) => frozen(name)));
  return states.flatMap((id) => (id === undefined ? [] : [id]));
}

/** Its id, or undefined when it is not frozen. */
async function frozen(name: string): Promise<string | undefined> {
  const inspected = await run("docker", ["inspect", "--format", "{{.Id}}", name]).catch(() => ({ stdout: "" }));
  const id = inspected.stdout.trim();
  const paths = [`/sys/fs/cgroup/freezer/docker/${id}/freezer.state`, `/sys/fs/cgroup/docker/${id}/cgroup.freeze`];
  const texts = await Promise.all(paths.map((path) => readFile(path, "utf8").catch(() => "")));
  return texts.some((text) => ["FROZEN", "1"].includes(text.trim())) ? id : undefined;
}

describe("a rewind to a checkpoint to which the sandbox was rewound before", () => {
  test("takes the copy, any number of times, and with the sandbox and its checkpoint nothing is left", async () => {
    const { started, snapshotId, at } = await withCopy();
    let current = started;
    for (let round = 0; round < 4; round++) {
      const began = Date.now();
      const next = await rewind(current, snapshotId);
      console.log(`rewound to a copy in ${Date.now() - began} ms`);
      expect(next.warm).toBe(true);
      await isAtCheckpoint(next, at, began);
      await outputOf(next, "echo new > /tmp/file");
      await copyWaits();
      current = next;
    }
    await agent.stop(current.executionId);
    await expect.poll(containers, SLOW).toEqual([]);
    await agent.call.deleteSnapshot({ params: { snapshotId } });
  });

  test("works while the copy is being made, and after the copy has ended", async () => {
    const { started, snapshotId, at } = await withCopy();
    let current = await rewind(started, snapshotId);
    for (const ms of [0, 160, 300, 600]) {
      await after(ms);
      const began = Date.now();
      current = await rewind(current, snapshotId);
      await isAtCheckpoint(current, at, began);
    }
    await copyWaits();
    await killFrozen((await frozenContainers())[0] ?? "");
    const began = Date.now();
    current = await rewind(current, snapshotId);
    await isAtCheckpoint(current, at, began);
    await agent.stop(current.executionId);
    await agent.call.deleteSnapshot({ params: { snapshotId } });
    await expect.poll(containers, SLOW).toEqual([]);
  });

  test("finds no copy once its checkpoint is deleted, and the sandbox goes on", async () => {
    const { started, snapshotId } = await withCopy();
    await agent.call.deleteSnapshot({ params: { snapshotId } });
    await expect(rewind(started, snapshotId)).rejects.toMatchObject({ code: "snapshot_files_missing" });
    await expect.poll(containers, SLOW).toHaveLength(1);
    const there = await count(started);
    await expect.poll(() => count(started)).toBeGreaterThan(there);
    await agent.stop(started.executionId);
    await expect.poll(containers, SLOW).toEqual([]);
  });

  test("does not find the copy of an agent that was killed: no later agent keeps it", async () => {
    const { started, snapshotId, at } = await withCopy();
    await agent.crash();
    await agent.launch();
    await expect.poll(containers, SLOW).toHaveLength(1);
    const began = Date.now();
    const next = await rewind(started, snapshotId);
    expect(next.warm).toBe(false);
    await isAtCheckpoint(next, at, began);
    await agent.stop(next.executionId);
    await agent.call.deleteSnapshot({ params: { snapshotId } });
    await expect.poll(containers, SLOW).toEqual([]);
  });

  test.each([0, 10, 30, 80])(
    "in which the agent is killed after %i ms leaves one of the two, and can be asked for again",
    async (ms) => {
      const { started, snapshotId } = await withCopy();
      const executionId = randomUUID();
      const rewinding = rewind(started, snapshotId, executionId).catch(() => undefined);
      await after(ms);
      await agent.crash();
      await rewinding;
      await agent.launch();
      const seen = agent.heartbeats.length;
      await expect.poll(() => agent.heartbeats.length, SLOW).toBeGreaterThan(seen + 1);
      const running = agent.heartbeats.at(-1)?.executions.filter((one) => one.sandboxId === started.sandboxId) ?? [];
      expect([[started.executionId], [executionId]]).toContainEqual(running.map((one) => one.executionId));
      const next = await rewind(started, snapshotId, executionId);
      expect(await outputOf(next, "cat /tmp/file 2>&1 || true")).toContain("No such file");
      const there = await count(next);
      await expect.poll(() => count(next)).toBeGreaterThan(there);
      await agent.stop(executionId);
      await agent.call.deleteSnapshot({ params: { snapshotId } });
      await expect.poll(containers, SLOW).toEqual([]);
    },
  );
});
