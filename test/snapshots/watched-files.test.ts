/**
 * A sandbox that watches files and directories of every kind is stored with its watches: they go on after a pause, in a copy and in
 * a copy of the copy. Those of files without a name end, and keep nothing from being stored.
 */

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const root = { user: "root" };
const SLOW = { timeout: 60_000, interval: 100 };

let agent: RealAgent;
let program: string;
beforeAll(async () => {
  agent = await realAgent();
  program = (await readFile(new URL("../support/sandbox/watched.py", import.meta.url))).toString("base64");
});
afterAll(() => agent.close());

const ask = (executionId: string) => ({ params: { executionId }, body: { snapshotId: randomUUID(), memory: true } });
const lines = async ({ address }: Started) =>
  (await command(address, "cat /tmp/heard", root)).output.trim().split("\n");

/** Lets the program act, and expects that it hears of everything that has a name. */
async function expectHears(sandbox: Started, turn: number): Promise<void> {
  await command(sandbox.address, `touch /tmp/go-${turn}`, root);
  await expect.poll(async () => (await lines(sandbox)).length, SLOW).toBe(turn + 1);
  const heard = JSON.parse((await lines(sandbox))[turn] ?? "{}") as Record<string, boolean>;
  expect(Object.keys(heard).length).toBeGreaterThan(12);
  expect(Object.entries(heard).flatMap(([kind, known]) => (known ? [] : [kind]))).toEqual([]);
}

test("watches of every kind of file go on after a pause, in a copy and in a copy of the copy", async () => {
  const first = await agent.start();
  await background(first.address, `echo ${program} | base64 -d | python3 - > /tmp/heard 2>&1`, root);
  await expect.poll(() => lines(first), SLOW).toEqual(["ready"]);
  await expectHears(first, 1);

  const pause = await agent.call.pauseExecution(ask(first.executionId));
  expect(pause.memory).toBe(true);
  await agent.drop();
  const origin = { is: "paused" as const, snapshotId: pause.snapshotId, memory: true };
  const again = await agent.start({ sandboxId: first.sandboxId, origin });
  expect(again.restored).toBe("memory");
  await expectHears(again, 2);

  const copyOf = async ({ executionId }: Started) => {
    const { snapshotId } = await agent.call.checkpointExecution(ask(executionId));
    const copy = await agent.start({ origin: { is: "snapshot", snapshotId, memory: true } });
    expect(copy.restored).toBe("memory");
    return { copy, snapshotId };
  };
  const one = await copyOf(again);
  await expectHears(one.copy, 3);
  const two = await copyOf(one.copy);
  await expectHears(two.copy, 4);
  // The source hears of its own files alone.
  expect(await lines(again)).toHaveLength(3);
  await Promise.all([again, one.copy, two.copy].map(({ executionId }) => agent.stop(executionId)));
  for (const { snapshotId } of [one, two]) await agent.call.deleteSnapshot({ params: { snapshotId } });
});
