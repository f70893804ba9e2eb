/**
 * A paused sandbox that goes on on another node, which reads its memory and disk from the first one while both live, without a blob
 * store: two agents on this machine, each with a state, disks and a network of its own.
 */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Started } from "../../../shared/agent-api/routes.ts";
import { BASE, BESIDE, NODE_ID, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";
import { background, command } from "../../support/sandbox/envd-commands.ts";

const SLOW = { timeout: 90_000, interval: 250 };
const COUNTER = "i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 0.05; done";
const PROJECT = randomUUID();

let first: RealAgent;
let second: RealAgent;
beforeAll(async () => {
  first = await realAgent({ SVC_FROZEN_SECONDS: "0" });
  second = await realAgent({ ...BESIDE, SVC_FROZEN_SECONDS: "0" });
});
afterAll(async () => {
  await second?.close();
  await first?.close();
});

const count = async ({ address }: Started) => Number((await command(address, "cat /tmp/count")).output);

test("a paused sandbox goes on with memory, files and processes on the node that has read it from the first", async () => {
  const started = await first.start({ projectId: PROJECT });
  const { sandboxId, executionId } = started;
  await background(started.address, COUNTER);
  await command(started.address, "echo kept > ~/file; echo shared > /dev/shm/file");
  await expect.poll(() => count(started)).toBeGreaterThan(3);
  const snapshotId = randomUUID();
  const before = await count(started);
  await first.call.pauseExecution({ params: { executionId }, body: { snapshotId, memory: true } });

  const offer = async () => first.call.offerSnapshot({ params: { snapshotId } });
  await expect.poll(async () => (await offer()).ref, SLOW).toBeTypeOf("string");
  const { ref = "", ticket, projectId } = await offer();
  expect(projectId).toBe(PROJECT);
  // The first node drops the container within a second after the pause, but not while another node reads what it left.
  const body = { ref, projectId, memory: true, peer: { nodeId: NODE_ID, url: first.url, ticket } };
  const fetched = async () => (await second.call.fetchSnapshot({ params: { snapshotId }, body })).here;
  await expect.poll(fetched, SLOW).toBe(true);
  await first.call.deleteSnapshot({ params: { snapshotId } });

  const origin = { is: "paused", snapshotId, memory: true } as const;
  const resumed = await second.start({ sandboxId, build: BASE, projectId: PROJECT, origin });
  expect(resumed.restored).toBe("memory");
  await expect.poll(() => count(resumed)).toBeGreaterThan(before);
  expect((await command(resumed.address, "cat ~/file /dev/shm/file")).output).toBe("kept\nshared");
  await second.stop(resumed.executionId);
}, 600_000);
