/** A sandbox of a real agent whose program counts, and a checkpoint of it: what a rewind brings back. */

import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { Started } from "../../../shared/agent-api/routes.ts";
import type { RealAgent } from "../agent/real-agent.ts";
import { background, command } from "./envd-commands.ts";

export const SLOW = { timeout: 90_000, interval: 100 };
const COUNTER = "i=0; while :; do i=$((i+1)); echo $i > /tmp/count.new; mv /tmp/count.new /tmp/count; sleep 0.05; done";

export async function outputOf({ address }: Started, text: string): Promise<string> {
  return (await command(address, text)).output.trim();
}

export async function count(started: Started): Promise<number> {
  return Number(await outputOf(started, "cat /tmp/count"));
}

/** `at` is what it had counted when the checkpoint was there, or a little more. */
export async function withCheckpoint(agent: RealAgent) {
  const started = await agent.start();
  await background(started.address, COUNTER);
  await expect.poll(() => count(started), SLOW).toBeGreaterThan(1);
  const snapshotId = randomUUID();
  const params = { executionId: started.executionId };
  await agent.call.checkpointExecution({ params, body: { snapshotId, memory: true } });
  return { started, snapshotId, at: await count(started) };
}

/** It counts on, and gets a file that the checkpoint has not. */
export async function goesOn(started: Started, at: number): Promise<void> {
  await outputOf(started, "echo new > /tmp/file");
  await expect.poll(() => count(started), SLOW).toBeGreaterThan(at + 20);
}

export const rewindOf = ({ sandboxId, executionId }: Started, snapshotId: string, memory = true) => ({
  sandboxId,
  origin: { is: "rewind" as const, snapshotId, memory, replaces: executionId },
});

/** @param began when the rewind was asked for, unix milliseconds */
export async function isAtCheckpoint(next: Started, at: number, began: number): Promise<void> {
  expect(next.restored).toBe("memory");
  expect(await outputOf(next, "cat /tmp/file 2>&1 || true")).toContain("No such file");
  const there = await count(next);
  // It counts at most twenty times a second.
  expect(there).toBeLessThan(at + 10 + (Date.now() - began) / 50);
  await expect.poll(() => count(next)).toBeGreaterThan(there);
}
