/**
 * CRIU is killed in a dump, at moments that do not depend on the machine's speed: the sandbox runs on as before. When a
 * sandbox ends in a dump or right after one, its disk is kept or its end is reported. The last test shows where a sandbox's
 * stopped processes are while CRIU seizes them.
 */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { type HeldCriu, heldCriu, type Moment } from "../support/criu/held-criu.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const run = promisify(execFile);
const SLOW = { timeout: 60_000, interval: 200 };
const ROOT = { user: "root" };
/** Much longer than a dump takes, and shorter than the time for which its caller waits. */
const DUMP_LIMIT_MS = 20_000;
const KEEPER = `
import os, time
token = os.urandom(16).hex()
os.makedirs('/srv/work'); os.chdir('/srv/work')
with open('a', 'w') as one: one.write('text')
os.link('a', 'b'); f = open('a'); os.unlink('a')
with open('token.new', 'w') as one: one.write(token)
os.rename('token.new', 'token')
while not os.path.exists('ask'): time.sleep(0.05)
with open('answer.new', 'w') as one: one.write(token)
os.rename('answer.new', 'answer')
time.sleep(3000)
`;

let agent: RealAgent;
let criu: HeldCriu;
beforeAll(async () => {
  criu = await heldCriu();
  await criu.holdAt();
  const settings = {
    SVC_FROZEN_SECONDS: "0",
    SVC_TEST_PROGRAMS: criu.programs,
    SVC_TEST_DUMP_LIMIT_MS: String(DUMP_LIMIT_MS),
  };
  agent = await realAgent(settings, new URL("../support/criu/agent.ts", import.meta.url));
});
afterEach(() => criu.holdAt());
afterAll(async () => {
  await agent.close();
  await criu.remove();
});

const cat = async (address: string, path: string) => (await command(address, `cat ${path}`, ROOT)).output;

async function keeping(): Promise<Started & { readonly token: string }> {
  const started = await agent.start();
  const script = Buffer.from(KEEPER).toString("base64");
  await background(started.address, `echo ${script} | base64 -d > /srv/k.py; exec python3 /srv/k.py`, ROOT);
  await expect.poll(() => cat(started.address, "/srv/work/token"), SLOW).toMatch(/^[0-9a-f]{32}$/);
  return { ...started, token: await cat(started.address, "/srv/work/token") };
}

const actions = {
  pause: (executionId: string, snapshotId: string) =>
    agent.call.pauseExecution({ params: { executionId }, body: { snapshotId, memory: true } }),
  fork: (executionId: string, snapshotId: string) =>
    agent.call.checkpointExecution({ params: { executionId }, body: { snapshotId, memory: true } }),
};

/** Kills the sandbox's first process, even while CRIU holds the processes. */
async function killFirstProcess(sandboxId: string): Promise<void> {
  const { stdout } = await run("docker", ["inspect", "-f", "{{.State.Pid}}", `svc-${sandboxId}`]);
  process.kill(Number(stdout), "SIGKILL");
}

/** The snapshots of this execution in the agent's last report. */
const stored = (executionId: string) =>
  agent.heartbeats.at(-1)?.snapshots.filter((one) => one.executionId === executionId) ?? [];
const exits = (executionId: string) => agent.exits.filter((one) => one.executionId === executionId);

/** Kills CRIU at this moment and resolves to the caller's answer; `before` runs while CRIU still holds the sandbox. */
async function killedAt(
  moment: Moment,
  action: keyof typeof actions,
  executionId: string,
  before = () => Promise.resolve(),
): Promise<string> {
  await criu.holdAt(moment);
  const answer = actions[action](executionId, randomUUID()).then(
    () => "done",
    (error: Error) => error.message,
  );
  const pid = await criu.held();
  await before();
  process.kill(pid, "SIGKILL");
  return answer;
}

const ACTIONS = ["pause", "fork"] as const;
const GOES_ON: readonly Moment[] = ["seized", "pages", "named"];

test.each(ACTIONS.flatMap((action) => GOES_ON.map((moment) => ({ action, moment }))))(
  "a CRIU that is killed in a $action, its moment $moment, costs the sandbox nothing and leaves no name on its disk",
  async ({ action, moment }) => {
    const { executionId, address, token } = await keeping();
    expect(await killedAt(moment, action, executionId)).toMatch(/cannot be stored: .*; it goes on running$/);
    await command(address, "touch /srv/work/ask", ROOT);
    await expect.poll(() => cat(address, "/srv/work/answer"), SLOW).toBe(token);
    const found = await command(address, "find / -xdev -name 'link_remap.*'; ls /srv/work | xargs", ROOT);
    expect(found.output).toBe("answer ask b token");
    await agent.stop(executionId);
  },
  300_000,
);

test.each([
  { action: "pause", moment: "seized" },
  { action: "fork", moment: "pages" },
] as const)(
  "a CRIU that hangs in a $action, its moment $moment, is ended at its limit and costs the sandbox nothing",
  async ({ action, moment }) => {
    const { executionId, address, token } = await keeping();
    await criu.holdAt(moment);
    const answer = actions[action](executionId, randomUUID()).then(
      () => "done",
      (error: Error) => error.message,
    );
    const pid = await criu.held();
    onTestFinished(() => tryKill(pid));
    expect(await answer).toMatch(/cannot be stored: .*; it goes on running$/);
    await command(address, "touch /srv/work/ask", ROOT);
    await expect.poll(() => cat(address, "/srv/work/answer"), SLOW).toBe(token);
    expect(await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).toBe("");
    await agent.stop(executionId);
  },
  300_000,
);

function tryKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has ended.
  }
}

const HELD: readonly Moment[] = ["seized", "pages"];

test.each(ACTIONS.flatMap((action) => HELD.map((moment) => ({ action, moment }))))(
  "a sandbox whose first process is killed with CRIU in a $action, its moment $moment, is kept as a pause of its disk",
  async ({ action, moment }) => {
    const { executionId, sandboxId, token } = await keeping();
    const end = () => killFirstProcess(sandboxId);
    expect(await killedAt(moment, action, executionId, end)).toMatch(/cannot be stored: /);
    await criu.holdAt();
    await expect.poll(() => stored(executionId), SLOW).toMatchObject([{ kind: "pause", memory: false, sandboxId }]);
    expect(exits(executionId)).toEqual([]);
    const snapshotId = stored(executionId)[0]?.snapshotId ?? "";
    const again = await agent.start({ sandboxId, origin: { is: "paused", snapshotId, memory: true } });
    expect([again.restored, await cat(again.address, "/srv/work/token")]).toEqual(["disk", token]);
    await agent.stop(again.executionId);
  },
  300_000,
);

test("a sandbox whose first process is killed after a fork has ended with a reported reason, and its copy is kept", async () => {
  const { executionId, sandboxId, token } = await keeping();
  const snapshotId = randomUUID();
  await actions.fork(executionId, snapshotId);
  await killFirstProcess(sandboxId);
  // The agent repeats a report whose answer came late.
  const reported = () => exits(executionId)[0];
  await expect.poll(reported, SLOW).toMatchObject({ sandboxId, reason: "exited", exitCode: 137 });
  const copy = await agent.start({ origin: { is: "snapshot", snapshotId, memory: true } });
  expect([copy.restored, await cat(copy.address, "/srv/work/token")]).toEqual(["memory", token]);
  await agent.stop(copy.executionId);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
});

/** Finds the host's process id of the process with this name, once it has stopped. */
async function stoppedNamed(name: string): Promise<string | undefined> {
  for (const pid of (await readdir("/proc")).filter((one) => /^\d+$/.test(one))) {
    const read = (file: string) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "");
    if ((await read("cmdline")).split("\0").at(-2) === name && /^State:\s+T/m.test(await read("status"))) return pid;
  }
  return undefined;
}

test("a process that was stopped before is not in the machine's own freezer group while CRIU holds it", async () => {
  const { address, executionId } = await agent.start();
  const name = `stopped-${randomUUID()}`;
  await background(address, `exec bash -c 'kill -STOP $$' ${name}`, ROOT);
  let stopped: string | undefined;
  await expect.poll(async () => (stopped = await stoppedNamed(name)), SLOW).toBeDefined();
  const groups = async () =>
    (await readFile(`/proc/${stopped}/cgroup`, "utf8")).split("\n").filter((line) => /:freezer:|^0::/.test(line));
  const before = await groups();
  await criu.holdAt("stopped process seized");
  const snapshotId = randomUUID();
  const stored = actions.fork(executionId, snapshotId);
  const pid = await criu.held();
  const during = await groups();
  const root = await readFile("/sys/fs/cgroup/freezer/tasks", "utf8").catch(() => "");
  process.kill(pid, "SIGCONT");
  await stored;
  expect(during.filter((line) => line.endsWith(":/"))).toEqual(before.filter((line) => line.endsWith(":/")));
  expect(root.split("\n")).not.toContain(stopped);
  expect(await groups()).toEqual(before);
  await agent.stop(executionId);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
}, 300_000);
