/** A directory that a killed containerd leaves for a container does not keep the container's sandbox paused. */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { containers, type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { command } from "../support/sandbox/envd-commands.ts";

const TASKS = [
  "/run/docker/containerd/daemon/io.containerd.runtime.v2.task/moby",
  "/run/containerd/io.containerd.runtime.v2.task/moby",
];

const run = promisify(execFile);

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent({ SVC_FROZEN_SECONDS: "0" });
});
afterAll(() => agent.close());

test("a sandbox whose task directory is left over is resumed with its memory", async () => {
  const started = await agent.start();
  await command(started.address, "echo kept > /tmp/kept");
  const { snapshotId } = await agent.call.pauseExecution({
    params: { executionId: started.executionId },
    body: { snapshotId: randomUUID(), memory: true },
  });
  const ended = async () => (await containers()).filter(({ state }) => state !== "running");
  await expect.poll(async () => (await ended()).length, { timeout: 60_000 }).toBe(1);
  const [container] = await ended();
  const tasks = TASKS.find((directory) => existsSync(directory));
  if (container === undefined || tasks === undefined)
    throw new Error("no container, or containerd keeps tasks elsewhere");
  const left = join(tasks, (await run("docker", ["inspect", "--format", "{{.Id}}", container.name])).stdout.trim());
  await mkdir(join(left, "rootfs"), { recursive: true });
  await writeFile(join(left, "config.json"), "{}");
  onTestFinished(() => rm(left, { recursive: true, force: true }));

  const origin = { is: "paused" as const, snapshotId, memory: true };
  const resume = () => agent.start({ sandboxId: started.sandboxId, origin });
  await expect(resume()).rejects.toThrow("could not be restored");
  const again = await resume();
  expect(again.restored).toBe("memory");
  expect((await command(again.address, "cat /tmp/kept")).output).toBe("kept");
  await agent.stop(again.executionId);
  // The container's shim needs that directory until the container is removed.
  await expect.poll(containers, { timeout: 60_000 }).toEqual([]);
});
