/**
 * A paused sandbox and a named snapshot that outlive their node: the first agent is removed with everything that it had, and a
 * second one, with a state and disks of its own, starts them from a directory as the blob store.
 */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Beyond, Started } from "../../../shared/agent-api/routes.ts";
import { newSandboxId } from "../../../shared/ids.ts";
import { BASE, NODE_ID, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";
import { background, command } from "../../support/sandbox/envd-commands.ts";

const run = promisify(execFile);
const SLOW = { timeout: 90_000, interval: 250 };
const COUNTER = "i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 0.05; done";
const PLATFORM = randomUUID();
const PROJECT = randomUUID();
/** Small, because all of it is read, and what is not in the store yet is compressed and sealed. */
const BELOW = "svc/test-busybox:latest";
/** An image that is on the first node only: the test removes it between the two. */
const IMAGE = `svc/test-beyond-${NODE_ID}:latest`;
const build = { ...BASE, image: IMAGE };

let share: string;
let imageId: string;
let agent: RealAgent;
const settings = () => ({
  SVC_BLOB_STORE: share,
  SVC_BLOB_STORE_PAUSED: "true",
  SVC_BLOB_KEY: "of the test, with 32 characters or more",
  SVC_FROZEN_SECONDS: "0",
});

beforeAll(async () => {
  share = await mkdtemp(join(tmpdir(), "svc-share-"));
  const context = await mkdtemp(join(tmpdir(), "svc-image-"));
  const bash = `printf '#!/bin/sh\\nexec /bin/sh "$@"\\n' > /bin/bash && chmod 0755 /bin/bash`;
  await writeFile(join(context, "Dockerfile"), `FROM ${BELOW}\nRUN ${bash} && echo below > /of-the-image\n`);
  await run("docker", ["build", "--quiet", "--network", "none", "--tag", IMAGE, context]);
  imageId = (await run("docker", ["image", "inspect", "--format", "{{.Id}}", IMAGE])).stdout.trim();
  await rm(context, { recursive: true });
  agent = await realAgent(settings());
  agent.setPlatform(PLATFORM);
});
afterAll(async () => {
  await agent?.close();
  await run("docker", ["rmi", "--force", imageId]).catch(() => undefined);
  await rm(share, { recursive: true, force: true });
});

const count = async ({ address }: Started) => Number((await command(address, "cat /tmp/count")).output);
const says = async ({ address }: Started, line: string) => (await command(address, line)).output;
const storedAs = (snapshotId: string): Beyond | undefined =>
  agent.heartbeats.at(-1)?.snapshots.find((each) => each.snapshotId === snapshotId)?.stored;
const refOf = async (snapshotId: string) => {
  await expect.poll(() => storedAs(snapshotId), SLOW).toHaveProperty("ref");
  const stored = storedAs(snapshotId);
  return stored !== undefined && "ref" in stored ? stored.ref : "";
};
const fetched = async (snapshotId: string, ref: string) => {
  const ask = () =>
    agent.call.fetchSnapshot({ params: { snapshotId }, body: { ref, projectId: PROJECT, memory: true } });
  await expect.poll(async () => (await ask()).here, SLOW).toBe(true);
};

test("a paused sandbox and a named snapshot go on with memory, files and processes on another node, whose Docker did not have their image", async () => {
  const started = await agent.start({ build, projectId: PROJECT });
  const { sandboxId, executionId } = started;
  await background(started.address, COUNTER);
  await command(started.address, "echo kept > ~/file; echo shared > /dev/shm/file");
  await expect.poll(() => count(started)).toBeGreaterThan(3);
  const [named, paused] = [randomUUID(), randomUUID()];
  await agent.call.checkpointExecution({ params: { executionId }, body: { snapshotId: named, memory: true } });
  const before = await count(started);
  await agent.call.pauseExecution({ params: { executionId }, body: { snapshotId: paused, memory: true } });
  const refs = { named: await refOf(named), paused: await refOf(paused) };

  await agent.close();
  // With every name that the first agent gave it.
  await run("docker", ["rmi", "--force", imageId]);
  await expect(run("docker", ["image", "inspect", imageId])).rejects.toThrow();
  agent = await realAgent(settings());
  agent.setPlatform(PLATFORM);
  await expect
    .poll(() => agent.heartbeats.at(-1)?.load.findings?.map(({ id }) => id), SLOW)
    .not.toContain("blobs.store");

  await fetched(paused, refs.paused);
  const resumed = await agent.start({
    sandboxId,
    build,
    projectId: PROJECT,
    origin: { is: "paused", snapshotId: paused, memory: true },
  });
  expect(resumed.restored).toBe("memory");
  await expect.poll(() => count(resumed)).toBeGreaterThan(before);
  expect(await says(resumed, "cat ~/file /dev/shm/file /of-the-image")).toBe("kept\nshared\nbelow");

  await fetched(named, refs.named);
  const copy = await agent.start({
    sandboxId: newSandboxId(),
    build,
    projectId: PROJECT,
    origin: { is: "snapshot", snapshotId: named, memory: true },
  });
  expect(copy.restored).toBe("memory");
  expect(await says(copy, "cat ~/file /dev/shm/file /of-the-image")).toBe("kept\nshared\nbelow");
  const now = await count(copy);
  await expect.poll(() => count(copy)).toBeGreaterThan(now);

  // It is a sandbox of this node now, which pauses, resumes and ends like any other.
  const again = randomUUID();
  await agent.call.pauseExecution({
    params: { executionId: resumed.executionId },
    body: { snapshotId: again, memory: true },
  });
  const third = await agent.start({
    sandboxId,
    build,
    projectId: PROJECT,
    origin: { is: "paused", snapshotId: again, memory: true },
  });
  expect(await says(third, "cat ~/file")).toBe("kept");
  await agent.stop(third.executionId);
  await agent.stop(copy.executionId);
  await agent.call.deleteSnapshot({ params: { snapshotId: named } });
}, 600_000);
