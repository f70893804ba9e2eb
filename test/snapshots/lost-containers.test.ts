/** Paused sandboxes whose containers are removed from Docker, as `docker container prune` does: a resume makes new ones. */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdir } from "node:fs/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { newSandboxId } from "../../shared/ids.ts";
import { containers, NODE_ID, type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const run = promisify(execFile);
const SLOW = { timeout: 60_000, interval: 100 };
const COUNTER = "i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 0.05; done";

/** Only this agent's containers: other programs use the same Docker daemon. */
const prune = () => run("docker", ["container", "prune", "--force", "--filter", `label=svc.node=${NODE_ID}`]);

describe("a paused sandbox whose container was removed from Docker", () => {
  let agent: RealAgent;
  beforeAll(async () => {
    agent = await realAgent({ SVC_FROZEN_SECONDS: "3600" });
  });
  afterAll(() => agent.close());

  const pause = async ({ executionId }: Started, memory = true) =>
    (await agent.call.pauseExecution({ params: { executionId }, body: { snapshotId: randomUUID(), memory } }))
      .snapshotId;
  const resume = ({ sandboxId }: Started, snapshotId: string, memory = true) =>
    agent.start({ sandboxId, origin: { is: "paused", snapshotId, memory } });
  const count = async ({ address }: Started) => Number((await command(address, "cat /tmp/count")).output);
  const says = async ({ address }: Started, line: string) => (await command(address, line)).output;
  const busy = async () => {
    const started = await agent.start();
    await background(started.address, COUNTER);
    await command(started.address, "echo kept > ~/file; echo shared > /dev/shm/file");
    await expect.poll(() => count(started)).toBeGreaterThan(3);
    return started;
  };
  const images = async () => (await readdir(agent.disks)).filter((name) => name.endsWith(".img"));
  const ended = async ({ executionId }: Started) => {
    await agent.stop(executionId);
    await expect.poll(containers, SLOW).toEqual([]);
    await expect.poll(images, SLOW).toEqual([]);
  };

  test("resumes with its memory and files in a new container, again and again, and can be copied then", async () => {
    let started = await busy();
    for (const round of [1, 2]) {
      const before = await count(started);
      const snapshotId = await pause(started);
      await agent.drop();
      await prune();
      expect(await containers(), `round ${round}`).toEqual([]);
      started = await resume(started, snapshotId);
      expect(started.restored).toBe("memory");
      await expect.poll(() => count(started)).toBeGreaterThan(before);
      expect(await says(started, "cat ~/file /dev/shm/file")).toBe("kept\nshared");
    }
    const { executionId } = started;
    const snapshotId = randomUUID();
    await agent.call.checkpointExecution({ params: { executionId }, body: { snapshotId, memory: true } });
    const copy = await agent.start({ sandboxId: newSandboxId(), origin: { is: "snapshot", snapshotId, memory: true } });
    expect(await says(copy, "cat ~/file /dev/shm/file")).toBe("kept\nshared");
    await agent.stop(copy.executionId);
    await agent.call.deleteSnapshot({ params: { snapshotId } });
    await ended(started);
  });

  test("boots from its disk without memory, and keeps what it wrote before and after", async () => {
    const first = await busy();
    const snapshotId = await pause(first, false);
    await agent.drop();
    await prune();
    const second = await resume(first, snapshotId, false);
    expect(await says(second, "cat ~/file; echo more >> ~/file")).toBe("kept");
    const again = await pause(second);
    await prune();
    const third = await resume(second, again);
    expect(await says(third, "cat ~/file")).toBe("kept\nmore");
    await ended(third);
  });

  test("resumes from its stored memory when the container was removed while frozen", async () => {
    const first = await busy();
    const snapshotId = await pause(first);
    await run("docker", ["rm", "--force", `svc-${first.sandboxId}`]);
    const second = await resume(first, snapshotId);
    expect(second.restored).toBe("memory");
    expect(await says(second, "cat ~/file /dev/shm/file")).toBe("kept\nshared");
    await ended(second);
  });

  test("is deleted with its disk, and is not started twice", async () => {
    const first = await busy();
    const snapshotId = await pause(first);
    await agent.drop();
    await prune();
    await agent.call.deleteSnapshot({ params: { snapshotId } });
    expect(await images()).toEqual([]);
    await expect(resume(first, snapshotId)).rejects.toMatchObject({ code: "snapshot_files_missing" });
  });
});
