/**
 * Templates that outlive their node: the first agent builds them and is removed with its images, and a second one, with a state and disks
 * of its own, starts them from a directory as the blob store. Both are killed on the way.
 */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { BuildBody } from "../../../shared/agent-api/build-shapes.ts";
import type { Beyond, Started } from "../../../shared/agent-api/routes.ts";
import { RESOURCES, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";
import { command } from "../../support/sandbox/envd-commands.ts";

const run = promisify(execFile);
const SLOW = { timeout: 120_000, interval: 250 };
const PLATFORM = randomUUID();
const PROJECT = randomUUID();
const [PLAIN, SERVING] = [randomUUID(), randomUUID()];
/** Small, because all of it is compressed and sealed. */
const BASE = "svc/test-busybox:latest";
/** What cannot be compressed, so that an upload of it lasts long enough to be cut: about three seconds. */
const BULK = "head -c 200000000 /dev/urandom > /bulk";
const imageOf = (buildId: string) => `svc/build:${buildId}`;

let share: string;
let agent: RealAgent;
const settings = () => ({
  SVC_BLOB_STORE: share,
  SVC_BLOB_KEY: "of the test, with 32 characters or more",
  SVC_FROZEN_SECONDS: "0",
  SVC_BUILD_LOCAL_IMAGES: "*",
});

beforeAll(async () => {
  share = await mkdtemp(join(tmpdir(), "svc-share-"));
  agent = await realAgent(settings());
  agent.setPlatform(PLATFORM);
});
afterAll(async () => {
  await agent?.close();
  for (const id of [PLAIN, SERVING]) await run("docker", ["rmi", "--force", imageOf(id)]).catch(() => undefined);
  await rm(share, { recursive: true, force: true });
});

const held = (buildId: string) => agent.heartbeats.at(-1)?.load.images?.find((each) => each.buildId === buildId);
const refIn = (stored: Beyond | undefined) => (stored !== undefined && "ref" in stored ? stored.ref : undefined);
const isOnItsWay = (stored: Beyond | undefined) =>
  stored !== undefined && "doneBytes" in stored && stored.totalBytes > 0;
const says = async ({ address }: Started, line: string) => (await command(address, line)).output;

/** @param also a command beside the one by which a sandbox shows the template that it is of */
async function build(buildId: string, also: string, more: Partial<BuildBody> = {}): Promise<void> {
  const body: BuildBody = {
    templateId: `template-${buildId}`,
    resources: RESOURCES,
    from: { is: "image", image: BASE },
    steps: [{ type: "RUN", number: 1, force: false, command: `echo ${buildId} > /made; ${also}`, user: "root" }],
    force: false,
    limitMs: 240_000,
    projectId: PROJECT,
    ...more,
  };
  await agent.call.startBuild({ params: { buildId }, body });
  const state = async () =>
    (await agent.call.buildState({ params: { buildId }, query: { offset: 0, limit: 500 } })).status;
  await expect.poll(state, SLOW).toBe("ready");
}

/** Kills the agent, and starts it again. */
async function restart(): Promise<void> {
  await agent.crash();
  agent.heartbeats.length = 0;
  await agent.launch();
}

test("templates with and without memory start from the store alone on a node that has nothing of them", async () => {
  await build(PLAIN, BULK);
  // Killed in the upload: the next process goes on. A machine that stands still may see it only when it is over.
  const uploads = () => isOnItsWay(held(PLAIN)?.stored) || refIn(held(PLAIN)?.stored) !== undefined;
  await expect.poll(uploads, SLOW).toBe(true);
  await restart();
  await build(SERVING, "true", { startCmd: "sleep 100000", readyCmd: "true" });
  for (const id of [PLAIN, SERVING]) await expect.poll(() => refIn(held(id)?.stored), SLOW).toBeTypeOf("string");
  await expect.poll(() => refIn(held(SERVING)?.memory?.stored), SLOW).toBeTypeOf("string");
  const refs = { plain: refIn(held(PLAIN)?.stored) ?? "", memory: refIn(held(SERVING)?.memory?.stored) ?? "" };
  const snapshotId = held(SERVING)?.memory?.snapshotId ?? "";

  const ids: string[] = [];
  for (const id of [PLAIN, SERVING])
    ids.push((await run("docker", ["image", "inspect", "--format", "{{.Id}}", imageOf(id)])).stdout.trim());
  await agent.close();
  for (const id of ids) {
    // With every name that the first agent gave it, where its end has left one.
    await run("docker", ["rmi", "--force", id]).catch(() => undefined);
    await expect(run("docker", ["image", "inspect", id])).rejects.toThrow();
  }
  agent = await realAgent(settings());
  agent.setPlatform(PLATFORM);
  const findings = () => agent.heartbeats.at(-1)?.load.findings?.map(({ id }) => id);
  await expect.poll(findings, SLOW).not.toContain("blobs.store");
  const inStore = async () => {
    const params = { buildId: PLAIN };
    const body = { image: imageOf(PLAIN), projectId: PROJECT, ref: refs.plain };
    return (await agent.call.fetchImage({ params, body })).here;
  };

  // Killed in the fetch: the next process begins again, and nothing of the first try is left.
  const first = inStore().catch(() => false);
  await restart();
  expect(await first).toBe(false);
  const fetched = () => inStore().catch(() => false);
  await expect.poll(fetched, SLOW).toBe(true);
  const plain = { templateId: `template-${PLAIN}`, buildId: PLAIN, image: imageOf(PLAIN) };
  const started = await agent.start({ build: plain, projectId: PROJECT });
  expect(await says(started, "cat /made")).toBe(PLAIN);
  await expect.poll(() => held(PLAIN), SLOW).toEqual({ buildId: PLAIN });

  const memory = async () => {
    const body = { ref: refs.memory, projectId: PROJECT, memory: true };
    return (await agent.call.fetchSnapshot({ params: { snapshotId }, body })).here;
  };
  await expect.poll(memory, SLOW).toBe(true);
  const serving = { templateId: `template-${SERVING}`, buildId: SERVING, image: imageOf(SERVING) };
  const origin = { is: "snapshot", snapshotId, memory: true } as const;
  const copy = await agent.start({ build: serving, projectId: PROJECT, origin });
  expect(copy.restored).toBe("memory");
  expect(await says(copy, "cat /made")).toBe(SERVING);
  expect(await says(copy, "pgrep -f 'sleep 100000' | wc -l")).not.toBe("0");
  await agent.stop(started.executionId);
  await agent.stop(copy.executionId);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
}, 900_000);
