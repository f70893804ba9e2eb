/**
 * A dump gives names to deleted open files that have another hard link, because a restore needs the names. No disk of a
 * running sandbox has these names: not after a dump, a thaw, a boot without memory, nor after an aborted dump.
 */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { type HeldCriu, heldCriu } from "../support/criu/held-criu.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const SLOW = { timeout: 60_000, interval: 200 };
const ROOT = { user: "root" };
const HOLDER = `
import os, time
os.makedirs('/srv/work'); os.chdir('/srv/work')
with open('a', 'w') as one: one.write('text')
os.link('a', 'b'); f = open('a'); os.unlink('a')
open('ready', 'w').close()
while True:
    if os.path.exists('ask'):
        os.unlink('ask'); f.seek(0)
        with open('answer.new', 'w') as one: one.write(f.read())
        os.rename('answer.new', 'answer')
    time.sleep(0.05)
`;

let agent: RealAgent;
let criu: HeldCriu;
beforeAll(async () => {
  criu = await heldCriu();
  await criu.holdAt();
  const settings = { SVC_FROZEN_SECONDS: "3600", SVC_TEST_PROGRAMS: criu.programs };
  agent = await realAgent(settings, new URL("../support/criu/agent.ts", import.meta.url));
});
afterAll(async () => {
  await agent.close();
  await criu.remove();
});

async function holding(): Promise<Started> {
  const started = await agent.start();
  const script = Buffer.from(HOLDER).toString("base64");
  await background(started.address, `echo ${script} | base64 -d > /srv/h.py; exec python3 /srv/h.py`, ROOT);
  await expect.poll(async () => (await command(started.address, "ls /srv/work", ROOT)).output, SLOW).toContain("ready");
  return started;
}

const names = async ({ address }: Started) =>
  (await command(address, "find / -xdev -name 'link_remap.*'; ls /srv/work | xargs", ROOT)).output;

/** Reads through the process the file that it has open. */
async function read({ address }: Started): Promise<string> {
  await command(address, "touch /srv/work/ask", ROOT);
  const answer = async () => (await command(address, "cat /srv/work/answer && rm /srv/work/answer", ROOT)).output;
  let text = "";
  await expect.poll(async () => (text = await answer()), SLOW).not.toMatch(/^$|No such file/);
  return text;
}

const body = () => ({ snapshotId: randomUUID(), memory: true });
const copyOf = (snapshotId: string, memory: boolean) => agent.start({ origin: { is: "snapshot", snapshotId, memory } });
const pause = ({ executionId }: Started) => agent.call.pauseExecution({ params: { executionId }, body: body() });
const resume = ({ sandboxId }: Started, snapshotId: string, memory: boolean) =>
  agent.start({ sandboxId, origin: { is: "paused", snapshotId, memory } });
const CLEAN = /^b ready$/;

test("a copied sandbox and its copies, with memory and without, contain none of the file names that the dump made", async () => {
  const started = await holding();
  const { executionId } = started;
  const { snapshotId } = await agent.call.checkpointExecution({ params: { executionId }, body: body() });
  expect(await names(started)).toMatch(CLEAN);
  expect(await read(started)).toBe("text");
  const copy = await copyOf(snapshotId, true);
  expect(await names(copy)).toMatch(CLEAN);
  expect(await read(copy)).toBe("text");
  const booted = await copyOf(snapshotId, false);
  expect(await names(booted)).toMatch(CLEAN);
  for (const one of [started, copy, booted]) await agent.stop(one.executionId);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
}, 500_000);

test("a paused sandbox contains none of the dump's file names after it is thawed, restored from the disk or booted", async () => {
  const started = await holding();
  const first = await pause(started);
  const thawed = await resume(started, first.snapshotId, true);
  expect(thawed.restored).toBe("frozen");
  expect(await names(thawed)).toMatch(CLEAN);
  expect(await read(thawed)).toBe("text");
  const second = await pause(thawed);
  await agent.drop();
  const restored = await resume(started, second.snapshotId, true);
  expect(restored.restored).toBe("memory");
  expect(await names(restored)).toMatch(CLEAN);
  expect(await read(restored)).toBe("text");
  const third = await pause(restored);
  const booted = await resume(started, third.snapshotId, false);
  expect(await names(booted)).toMatch(CLEAN);
  await agent.stop(booted.executionId);
}, 500_000);

test("a dump whose agent was killed leaves none of its file names in the sandbox, which continues", async () => {
  const started = await holding();
  await criu.holdAt("named");
  const { executionId } = started;
  const asked = agent.call.checkpointExecution({ params: { executionId }, body: body() }).catch(() => undefined);
  const pid = await criu.held();
  await agent.crash();
  await asked;
  await criu.holdAt();
  process.kill(pid, "SIGCONT");
  await agent.launch();
  expect(await names(started)).toMatch(CLEAN);
  expect(await read(started)).toBe("text");
  await agent.stop(started.executionId);
}, 500_000);
