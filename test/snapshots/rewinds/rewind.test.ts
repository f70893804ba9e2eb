/** Rewinds on a real engine: a sandbox goes back to a checkpoint of itself, also when the agent is killed in the middle. */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
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

const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

let agent: RealAgent;
beforeAll(async () => {
  const settings = { SVC_FROZEN_SECONDS: "3600", SVC_HEARTBEAT_EVERY_MS: "200", SVC_REWIND_COPY_SECONDS: "0" };
  agent = await realAgent(settings);
});
afterAll(() => agent.close());

/** A sandbox whose counter runs and whose file is new, and a checkpoint from before that file. */
async function changed() {
  const { started, snapshotId, at } = await withCheckpoint(agent);
  await goesOn(started, at);
  return { started, snapshotId, at };
}

describe("a rewind", () => {
  test("brings back processes, memory and files of the checkpoint, any number of times", async () => {
    const { started, snapshotId, at } = await changed();
    let current = started;
    for (let round = 0; round < 3; round++) {
      const began = Date.now();
      const next = await agent.startAs(randomUUID(), rewindOf(current, snapshotId));
      console.log(`rewound in ${Date.now() - began} ms`);
      await isAtCheckpoint(next, at, began);
      await outputOf(next, "echo new > /tmp/file");
      await expect.poll(containers, SLOW).toHaveLength(1);
      current = next;
    }
    const booted = await agent.startAs(randomUUID(), rewindOf(current, snapshotId, false));
    expect(booted.restored).toBe("disk");
    expect(await outputOf(booted, "cat /tmp/file 2>&1 || true")).toContain("No such file");
    await agent.stop(booted.executionId);
    await agent.call.deleteSnapshot({ params: { snapshotId } });
    await expect.poll(containers, SLOW).toEqual([]);
  });

  test("to what is not there leaves the sandbox as it was, with its processes", async () => {
    const { started, snapshotId } = await changed();
    await agent.call.deleteSnapshot({ params: { snapshotId } });
    await expect(agent.startAs(randomUUID(), rewindOf(started, snapshotId))).rejects.toMatchObject({
      code: "snapshot_files_missing",
    });
    const there = await count(started);
    await expect.poll(() => count(started)).toBeGreaterThan(there);
    expect(await outputOf(started, "cat /tmp/file")).toBe("new");
    await agent.stop(started.executionId);
    await expect.poll(containers, SLOW).toEqual([]);
  });

  test.each([20, 200, 500, 1_000])(
    "in which the agent is killed after %i ms leaves one of the two, and can be asked for again",
    async (ms) => {
      const { started, snapshotId } = await changed();
      const executionId = randomUUID();
      const rewinding = agent.startAs(executionId, rewindOf(started, snapshotId)).catch(() => undefined);
      await after(ms);
      await agent.crash();
      await rewinding;
      await agent.launch();
      const seen = agent.heartbeats.length;
      await expect.poll(() => agent.heartbeats.length, SLOW).toBeGreaterThan(seen + 1);
      const running = agent.heartbeats.at(-1)?.executions.filter((one) => one.sandboxId === started.sandboxId) ?? [];
      console.log(
        `killed ${ms} ms into a rewind: ${running.some((one) => one.executionId === executionId) ? "rewound" : "as it was"}`,
      );
      expect([[started.executionId], [executionId]]).toContainEqual(running.map((one) => one.executionId));
      const next = await agent.startAs(executionId, rewindOf(started, snapshotId));
      expect(await outputOf(next, "cat /tmp/file 2>&1 || true")).toContain("No such file");
      const there = await count(next);
      await expect.poll(() => count(next)).toBeGreaterThan(there);
      await expect.poll(containers, SLOW).toHaveLength(1);
      await agent.stop(executionId);
      await agent.call.deleteSnapshot({ params: { snapshotId } });
      await expect.poll(containers, SLOW).toEqual([]);
    },
  );
});
