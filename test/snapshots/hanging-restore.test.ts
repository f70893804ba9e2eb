/**
 * A hanging restore: the agent cuts it at its limit with the reason, leaves nothing of it, and lets no other resume wait for
 * it.
 */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { containers, type RealAgent, RUN_DIR, realAgent } from "../support/agent/real-agent.ts";
import { buildLease, holdFile } from "../support/criu/hold-file.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const run = promisify(execFile);
const SLOW = { timeout: 60_000, interval: 200 };
const ROOT = { user: "root" };
const [SLOW_PROJECT, OTHER_PROJECT] = [randomUUID(), randomUUID()];
/** Shorter than the kernel's limit of a lease, 45 s, and much longer than a restore takes. */
const RESTORE_LIMIT_MS = 25_000;
const WRITER = "exec 3<>/srv/held; touch /tmp/ready; sleep 3000";

let agent: RealAgent;
let work: string;
let lease: string;
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "svc-hang-"));
  lease = await buildLease(work);
  const settings = {
    SVC_FROZEN_SECONDS: "0",
    // The agent starts two sandboxes at a time, but only one of each project.
    SVC_BOOT_CONCURRENCY: "2",
    SVC_START_LIMIT_MS: "120000",
    SVC_BOOT_QUEUE_MS: "120000",
    SVC_TEST_RESTORE_LIMIT_MS: String(RESTORE_LIMIT_MS),
  };
  agent = await realAgent(settings, new URL("../support/criu/agent.ts", import.meta.url));
});
afterAll(async () => {
  await agent.close();
  await rm(work, { recursive: true, force: true });
});

interface Paused {
  readonly sandboxId: string;
  readonly snapshotId: string;
}

/** Pauses a sandbox with a process that has a file open for writing; no frozen container is left. */
async function paused(): Promise<Paused> {
  const { executionId, sandboxId, address } = await agent.start();
  await background(address, WRITER, ROOT);
  await expect.poll(async () => (await command(address, "ls /tmp", ROOT)).output, SLOW).toContain("ready");
  const body = { snapshotId: randomUUID(), memory: true };
  await agent.call.pauseExecution({ params: { executionId }, body });
  const stopped = async () =>
    (await containers()).some(({ name, state }) => name === `svc-${sandboxId}` && state === "exited");
  await expect.poll(stopped, SLOW).toBe(true);
  return { sandboxId, snapshotId: body.snapshotId };
}

const resume = ({ sandboxId, snapshotId }: Paused, projectId: string): Promise<Started> =>
  agent.start({ sandboxId, projectId, origin: { is: "paused", snapshotId, memory: true } });

async function inspect({ sandboxId }: Paused, format: string): Promise<string> {
  const { stdout } = await run("docker", ["inspect", "-f", format, `svc-${sandboxId}`]);
  return stdout.trim();
}

async function hold(one: Paused): Promise<() => Promise<void>> {
  const upper = await inspect(one, "{{.GraphDriver.Data.UpperDir}}");
  return holdFile(lease, join(upper, "srv/held"));
}

/** Lists processes, cgroups, mounts (but its own disk) and directories that are left of a container's restore. */
async function left(id: string): Promise<readonly string[]> {
  const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const read = (path: string) => readFile(path, "utf8").catch(() => "");
  const ofIt = await Promise.all(
    processes.map(async (pid) => {
      const text = (await read(`/proc/${pid}/cgroup`)) + (await read(`/proc/${pid}/cmdline`));
      return text.includes(id) ? [`process ${pid}`] : [];
    }),
  );
  const { stdout: groups } = await run("find", ["/sys/fs/cgroup", "-maxdepth", "5", "-name", `*${id}*`]);
  const mounts = (await read("/proc/self/mountinfo"))
    .split("\n")
    .filter((line) => line.includes(id) && !line.includes(` ${agent.disks}/${id} `));
  const { stdout: states } = await run("find", ["/run/docker", RUN_DIR, "-name", id]).catch(() => ({
    stdout: "",
  }));
  return [...ofIt.flat(), ...groups.split("\n"), ...mounts, ...states.split("\n")].filter(Boolean);
}

test("a restore that hangs is cut with its reason, leaves nothing, and another project's restore does not wait for it", async () => {
  const [hung, behind, other] = [await paused(), await paused(), await paused()];
  const id = await inspect(hung, "{{.Id}}");
  const release = await hold(hung);
  const ended: string[] = [];
  const outcome = async (name: string, starting: Promise<Started>) => {
    const result = await starting.then(
      (started) => started,
      (error: Error) => error,
    );
    ended.push(name);
    return result;
  };
  const begun = Date.now();
  const first = outcome("hung", resume(hung, SLOW_PROJECT));
  const opens = async () =>
    /break_lease/.test((await run("sh", ["-c", "cat /proc/[0-9]*/wchan 2>/dev/null; true"])).stdout);
  await expect.poll(opens, SLOW).toBe(true);
  // The hung restore holds its own project's permit, and not the other project's.
  const second = outcome("behind", resume(behind, SLOW_PROJECT));
  const third = await outcome("other", resume(other, OTHER_PROJECT));
  expect(third).toMatchObject({ restored: "memory" });
  expect(ended).toEqual(["other"]);

  expect(await first).toMatchObject({
    message: `the sandbox's memory could not be restored: the restore did not end within its limit of ${RESTORE_LIMIT_MS / 1000} s; try again, or start from the disk alone (memory: false)`,
  });
  await expect.poll(() => left(id), SLOW).toEqual([]);
  const next = (await second) as Started;
  expect(next).toMatchObject({ restored: "memory" });
  // The second resume began when the hung one was cut, and not when its caller got an answer.
  expect(next.startedAt - begun).toBeGreaterThanOrEqual(RESTORE_LIMIT_MS);

  await release();
  const again = await resume(hung, SLOW_PROJECT);
  expect(again.restored).toBe("memory");
  for (const one of [again, next, third as Started]) await agent.stop(one.executionId);
}, 400_000);
