/**
 * Files that are deleted, renamed or replaced while a process has them open: the process keeps them in a copy and after a
 * pause.
 */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Started } from "../../../shared/agent-api/routes.ts";
import { containers, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";
import { background, command } from "../../support/sandbox/envd-commands.ts";
import { DATABASE, DATABASE_IN_COPY, holder, OPEN_FILES, type OpenFiles } from "../../support/sandbox/open-files.ts";

const SLOW = { timeout: 60_000, interval: 200 };
const ROOT = { user: "root" };

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent({ SVC_FROZEN_SECONDS: "0" });
});
afterAll(() => agent.close());

/** Starts a sandbox with one process for each set of files. */
async function holding(named: ReadonlyMap<string, OpenFiles>): Promise<Started> {
  const started = await agent.start({ resources: { cpuCount: 1, memoryMB: 1024, diskSizeMB: 1024 } });
  const { address } = started;
  for (const [name, files] of named) {
    const script = Buffer.from(holder(files, name)).toString("base64");
    await background(address, `echo ${script} | base64 -d > /srv/${name}.py; exec python3 /srv/${name}.py`, ROOT);
  }
  await expect
    .poll(() => said(address, "ready"), SLOW)
    .toEqual([...named.keys()].map((name) => `${name} ready`).toSorted());
  return started;
}

async function said(address: string, kind: string): Promise<string[]> {
  const text = `cd /srv/open; for f in *.${kind}; do [ -f "$f" ] && echo "\${f%.*} $(cat "$f")"; done`;
  const { output } = await command(address, text, ROOT);
  return output.split("\n").filter(Boolean).toSorted();
}

/** Asks each process what it sees now; the answers are sorted by name. */
async function asked(address: string, count: number, where: "copy" | "same disk" = "same disk"): Promise<string[]> {
  await command(address, `printf '${where}' > /tmp/ask.new && mv /tmp/ask.new /tmp/ask`, ROOT);
  await expect.poll(async () => (await said(address, "answer")).length, SLOW).toBe(count);
  return said(address, "answer");
}

const checkpoint = ({ executionId }: Started) =>
  agent.call.checkpointExecution({ params: { executionId }, body: { snapshotId: randomUUID(), memory: true } });

/** Pauses and resumes from memory on the disk, after the frozen container has ended. */
async function pausedAndResumed({ executionId, sandboxId }: Started): Promise<Started> {
  const { snapshotId } = await agent.call.pauseExecution({
    params: { executionId },
    body: { snapshotId: randomUUID(), memory: true },
  });
  const stopped = async () =>
    (await containers()).some(({ name, state }) => name === `svc-${sandboxId}` && state !== "running");
  await expect.poll(stopped, SLOW).toBe(true);
  const resumed = await agent.start({ sandboxId, origin: { is: "paused", snapshotId, memory: true } });
  expect(resumed.restored).toBe("memory");
  return resumed;
}

test("files that editors, package managers and log rotation keep open are unchanged in a copy and after a pause", async () => {
  const named = new Map(OPEN_FILES.map((files, index) => [`case${String(index).padStart(2, "0")}`, files]));
  const well = [...named.keys()].map((name) => `${name} True`);
  const inWords = (answers: readonly string[]) =>
    answers.map((answer) => `${named.get(answer.slice(0, 6))?.what}: ${answer.slice(7)}`);
  const started = await holding(named);
  const { snapshotId } = await checkpoint(started);
  const copy = await agent.start({ origin: { is: "snapshot", snapshotId, memory: true } });
  expect(copy.restored).toBe("memory");
  expect(inWords(await asked(copy.address, named.size, "copy"))).toEqual(inWords(well));
  await agent.stop(copy.executionId);
  const resumed = await pausedAndResumed(started);
  expect(inWords(await asked(resumed.address, named.size))).toEqual(inWords(well));
  await agent.stop(resumed.executionId);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
}, 500_000);

test("an open SQLite database works on after a pause; in a copy it can only read until it is opened again", async () => {
  const started = await holding(new Map([["database", DATABASE]]));
  const { snapshotId } = await checkpoint(started);
  const copy = await agent.start({ origin: { is: "snapshot", snapshotId, memory: true } });
  expect((await asked(copy.address, 1))[0]).toMatch(/^database (True|.*attempt to write a readonly database.*)$/);
  const script = Buffer.from(DATABASE_IN_COPY).toString("base64");
  expect(await command(copy.address, `echo ${script} | base64 -d | python3 -`, ROOT)).toEqual({ code: 0, output: "1" });
  await agent.stop(copy.executionId);
  const resumed = await pausedAndResumed(started);
  expect(await asked(resumed.address, 1)).toEqual(["database True"]);
  await agent.stop(resumed.executionId);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
}, 500_000);
