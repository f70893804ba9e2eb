/** A host's disk that is full: in the middle of each operation that writes to it, and by the sandboxes themselves. */

import { randomUUID } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { bodyOf, buildsOn, run } from "../support/agent/agent-builds.ts";
import { type LoopDisk, loopDisk } from "../support/agent/loop-disk.ts";
import { containers, RESOURCES, type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { until } from "../support/runner/until.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const MIB = 2 ** 20;
const BLOCK = 512;
const SLOW = { timeout: 60_000, interval: 100 };
const root = { user: "root" };
const LARGE = { resources: { ...RESOURCES, memoryMB: 512, diskSizeMB: 1024 } };

let disk: LoopDisk;
let agent: RealAgent;

/** An agent whose state and disks are on a disk of so many MiB. */
function agentOn(mb: number, settings: Readonly<Record<string, string>>): void {
  beforeAll(async () => {
    disk = await loopDisk("/var/tmp/svc-filled-disk", mb);
    agent = await realAgent({
      SVC_STATE_DIR: `${disk.place}/state`,
      SVC_DISKS_DIR: `${disk.place}/disks`,
      SVC_SNAPSHOT_QUOTA_MB: "0",
      ...settings,
    });
  });
  afterAll(async () => {
    await agent.close();
    await disk.close();
  });
}

const shell = async ({ address }: Started, text: string) => (await command(address, text, root)).output;
const ask = (executionId: string) => ({ params: { executionId }, body: { snapshotId: randomUUID(), memory: true } });
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (error: { code?: string }) => error.code,
  );
const disks = () => `${disk.place}/disks`;

/** Bytes on the disk of all files below a directory; of the disks' directory without what is mounted there. */
async function bytesBelow(directory: string): Promise<number> {
  const names = await readdir(directory, { recursive: directory !== disks() }).catch(() => []);
  const sizes = names.map((name) =>
    stat(join(directory, name)).then(
      ({ blocks }) => blocks * BLOCK,
      () => 0,
    ),
  );
  return (await Promise.all(sizes)).reduce((all, size) => all + size, 0);
}

/** Fills the host's disk as soon as the directory has grown; by then the operation is in its middle. */
async function fillAsItGrows(directory: string, butMb = 0): Promise<void> {
  const before = await bytesBelow(directory);
  const grown = async () => (await bytesBelow(directory)) > before + 16 * MIB;
  await until(grown, { what: `a file in ${directory} that grows`, timeoutMs: 120_000, everyMs: 2 });
  await disk.fill(butMb);
}

/** The operation fails when the disk fills in its middle, leaves nothing, and works when there is room again. */
async function survives<T>(directory: string, operation: () => Promise<T>): Promise<T> {
  const before = await bytesBelow(directory);
  const [code] = await Promise.all([codeOf(operation()), fillAsItGrows(directory)]);
  expect(code).toBe("no_space");
  await disk.unfill();
  await expect.poll(() => bytesBelow(directory), SLOW).toBeLessThan(before + 8 * MIB);
  return operation();
}

const whole = "cd /root && md5sum -c sum";

describe("on a host's disk that another program fills", () => {
  // The operations must fail in the middle, and not be refused at the beginning.
  agentOn(2_048, { SVC_FROZEN_SECONDS: "0", SVC_DISK_RESERVE_MB: "0" });

  test("a disk that fills in the middle of a snapshot, a fork or a pause costs nothing but that operation", async () => {
    const one = await agent.start(LARGE);
    await shell(one, "head -c 300M /dev/urandom > /root/file; md5sum /root/file > /root/sum; sync");
    const holds =
      'exec python3 -c \'import os, time; held = os.urandom(300 << 20); open("/tmp/held", "w"); time.sleep(3000)\'';
    await background(one.address, holds, root);
    await expect.poll(() => shell(one, "ls /tmp/held 2>/dev/null"), SLOW).toBe("/tmp/held");

    const { snapshotId } = await survives(join(disks(), "stored"), () =>
      agent.call.checkpointExecution(ask(one.executionId)),
    );
    expect(await shell(one, whole)).toBe("/root/file: OK");

    const copy = await survives(disks(), () =>
      agent.start({ ...LARGE, origin: { is: "snapshot", snapshotId, memory: true } }),
    );
    expect(await shell(copy, whole)).toBe("/root/file: OK");
    await agent.stop(copy.executionId);
    await agent.call.deleteSnapshot({ params: { snapshotId } });

    const paused = await survives(join(disk.place, "state", "snapshots"), () =>
      agent.call.pauseExecution(ask(one.executionId)),
    );
    await agent.drop();
    const origin = { is: "paused" as const, snapshotId: paused.snapshotId, memory: true };
    const again = await agent.start({ ...LARGE, sandboxId: one.sandboxId, origin });
    expect(again.restored).toBe("memory");
    expect(await shell(again, whole)).toBe("/root/file: OK");
    await agent.stop(again.executionId);
    await expect.poll(containers, SLOW).toEqual([]);
  }, 600_000);
});

describe("on a host's disk that two sandboxes fill", () => {
  agentOn(1_000, { SVC_FROZEN_SECONDS: "3600", SVC_DISK_RESERVE_MB: "200", SVC_BUILD_LOCAL_IMAGES: "*" });

  test("a build whose disk cannot grow says why, and the next sandbox starts", async () => {
    const { start, finished } = buildsOn(() => agent);
    const writes = run("head -c 600M /dev/urandom > /root/large", "root");
    const buildId = await start(bodyOf("base", [writes], { resources: { ...RESOURCES, diskSizeMB: 4_096 } }));
    await fillAsItGrows(disks(), 64);
    const { state } = await finished(buildId);
    expect(state.status).toBe("error");
    expect(JSON.stringify(state.reason)).toMatch(/no space|disk/i);
    await disk.unfill();
    const next = () =>
      agent.start().then(
        ({ executionId }) => agent.stop(executionId).then(() => "started"),
        (error: { code?: string }) => error.code,
      );
    await expect.poll(next, SLOW).toBe("started");
    await expect.poll(containers, SLOW).toEqual([]);
  }, 600_000);

  test("the sandboxes are held, an agent that is killed starts again, and a paused sandbox has lost nothing", async () => {
    const kept = await agent.start();
    await shell(kept, "head -c 20M /dev/urandom > /root/file; md5sum /root/file > /root/sum");
    const { snapshotId } = await agent.call.pauseExecution(ask(kept.executionId));
    await agent.drop();
    const large = { resources: { ...RESOURCES, diskSizeMB: 2048 } };
    const writers = [await agent.start(large), await agent.start(large)];
    const writes = "while :; do cat /dev/zero >> /root/full; sleep 0.1; done 2>/dev/null";
    for (const { address } of writers) await background(address, writes, root);
    const held = () => agent.heartbeats.at(-1)?.executions.filter((one) => one.held === true).length;
    // Where both were faster than the agent, the disk is full, and the second one gets errors instead of growing.
    await expect.poll(held, { timeout: 180_000, interval: 200 }).toBeGreaterThan(0);
    const refused = () =>
      agent.start().then(
        ({ executionId }) => agent.stop(executionId),
        (error: { code?: string }) => error.code,
      );
    await expect.poll(refused, SLOW).toBe("no_space");
    await agent.crash();
    await agent.launch();
    await expect.poll(refused, SLOW).toBe("no_space");
    for (const { executionId } of writers) await agent.stop(executionId);
    await expect.poll(() => disk.freeMb(), { timeout: 60_000 }).toBeGreaterThan(400);
    const origin = { is: "paused" as const, snapshotId, memory: true };
    const found: { again?: Started } = {};
    const resumed = () =>
      agent.start({ sandboxId: kept.sandboxId, origin }).then(
        (again) => (found.again = again).restored,
        (error: Error) => error.message,
      );
    await expect.poll(resumed, SLOW).toBe("memory");
    expect(found.again === undefined ? "" : await shell(found.again, whole)).toBe("/root/file: OK");
  }, 600_000);
});
