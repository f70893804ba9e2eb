/**
 * The agent is killed at exact steps of a resume with memory, while the restored processes go on writing to a file that they
 * have open: after each step the next resume keeps everything that they wrote.
 */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { containers, type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { buildLease, holdFile } from "../support/criu/hold-file.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const run = promisify(execFile);
const SLOW = { timeout: 60_000, interval: 50 };
const PROGRAM = new URL("../support/criu/killed-agent.ts", import.meta.url);
/** Writes numbers without end to a file that stays open; a restore opens another file for writing. */
const WRITER = "exec 3>>/tmp/log 4<>/tmp/held; i=0; while :; do i=$((i+1)); echo $i >&3; sleep 0.05; done";

let work: string;
let killAt: string;
let lease: string;
let agent: RealAgent;
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "svc-killed-"));
  killAt = join(work, "kill-at");
  lease = await buildLease(work);
});
afterAll(() => rm(work, { recursive: true, force: true }));

interface Paused {
  readonly sandboxId: string;
  readonly snapshotId: string;
  /** The sandbox's writable layer on the host. */
  readonly upper: string;
}

async function paused(): Promise<Paused> {
  const { executionId, sandboxId, address } = await agent.start();
  await background(address, WRITER);
  await expect.poll(async () => (await command(address, "cat /tmp/log")).output, SLOW).toContain("3");
  const inspected = await run("docker", ["inspect", "-f", "{{.GraphDriver.Data.UpperDir}}", `svc-${sandboxId}`]);
  const body = { snapshotId: randomUUID(), memory: true };
  await agent.call.pauseExecution({ params: { executionId }, body });
  return { sandboxId, snapshotId: body.snapshotId, upper: inspected.stdout.trim() };
}

const stateOf = async ({ sandboxId }: Paused) =>
  (await containers()).find(({ name }) => name === `svc-${sandboxId}`)?.state;
const written = async ({ upper }: Paused) => (await stat(join(upper, "tmp/log"))).size;
const resume = ({ sandboxId, snapshotId }: Paused) =>
  agent.start({ sandboxId, origin: { is: "paused", snapshotId, memory: true } });

/** Resumes the sandbox with an agent that kills itself at this step. */
async function killedAt(step: string, one: Paused): Promise<void> {
  const { pid } = agent;
  await writeFile(killAt, step);
  await expect(resume(one)).rejects.toThrow();
  const gone = () =>
    readFile(`/proc/${pid}/stat`, "utf8").then(
      (text) => text.includes(") Z "),
      () => true,
    );
  await expect.poll(gone, SLOW).toBe(true);
}

/** Checks that the same processes run on: in the file no number is missing, and none comes twice. */
async function expectWhole(address: string): Promise<void> {
  const numbers = async () => (await command(address, "cat /tmp/log")).output.split("\n").map(Number);
  const before = await numbers();
  await expect.poll(async () => (await numbers()).length, SLOW).toBeGreaterThan(before.length);
  const after = await numbers();
  expect(after).toEqual(after.map((_, index) => index + 1));
}

const remove = async ({ executionId, snapshotId }: { executionId: string; snapshotId: string }) => {
  await agent.stop(executionId);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
  await expect.poll(containers, SLOW).toEqual([]);
};

describe("an agent killed in a resume that restores the memory", () => {
  beforeAll(async () => {
    agent = await realAgent({ SVC_FROZEN_SECONDS: "0", SVC_TEST_KILL_AT: killAt }, PROGRAM);
  });
  afterAll(() => agent.close());

  const stored = async () => {
    const one = await paused();
    await expect.poll(() => stateOf(one), SLOW).toBe("exited");
    return one;
  };

  test.each(["restore begun", "restored", "envd answered", "identity set"])(
    "at the step '%s' loses nothing that the processes did",
    async (step) => {
      const one = await stored();
      const size = await written(one);
      await killedAt(step, one);
      // The processes run without an agent, and write: the stored memory does not fit the disk any more.
      await expect.poll(() => written(one), SLOW).toBeGreaterThan(size);
      await agent.launch();
      const again = await resume(one);
      await expectWhole(again.address);
      expect(again.restored).toBe("frozen");
      await remove({ ...again, ...one });
    },
    500_000,
  );

  test("leaves a restore, and the next agent waits for the end of it", async () => {
    const one = await stored();
    const release = await holdFile(lease, join(one.upper, "tmp/held"));
    await killedAt("restore begun", one);
    await rm(`${killAt}.inspected`);
    const launched = agent.launch();
    const inspected = () =>
      readFile(`${killAt}.inspected`, "utf8").then(
        () => true,
        () => false,
      );
    await expect.poll(inspected, SLOW).toBe(true);
    await release();
    await launched;
    const again = await resume(one);
    // On a slow machine the OCI runtime has ended the restore by now, and then no process ran.
    await expectWhole(again.address);
    await remove({ ...again, ...one });
  }, 500_000);
});

describe("an agent killed in a resume that thaws the memory", () => {
  beforeAll(async () => {
    agent = await realAgent({ SVC_FROZEN_SECONDS: "3600", SVC_TEST_KILL_AT: killAt }, PROGRAM);
  });
  afterAll(() => agent.close());

  test("loses nothing that the processes did, also when the next agent is killed in the same way", async () => {
    const one = await paused();
    for (let round = 0; round < 2; round++) {
      const size = await written(one);
      await killedAt("identity set", one);
      await expect.poll(() => written(one), SLOW).toBeGreaterThan(size);
      await agent.launch();
    }
    const again = await resume(one);
    await expectWhole(again.address);
    expect(again.restored).toBe("frozen");
    await remove({ ...again, ...one });
  }, 500_000);
});
