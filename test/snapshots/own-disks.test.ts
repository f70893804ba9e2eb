/** The disk of its own that every sandbox has: its limit, its copies, and what a reboot or damage does to it. */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, statfs, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { runCommand } from "../../agent/host/command.ts";
import { nativeProgram } from "../../agent/host/native-program.ts";
import { hostDisks } from "../../agent/sandbox-disks/disks.ts";
import type { Started } from "../../shared/agent-api/routes.ts";
import { containers, RESOURCES, type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { command } from "../support/sandbox/envd-commands.ts";

const run = promisify(execFile);
const SLOW = { timeout: 90_000, interval: 100 };
const root = { user: "root" };
const SMALL = { resources: { ...RESOURCES, diskSizeMB: 100 } };

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent({ SVC_FROZEN_SECONDS: "3600" });
});
afterAll(() => agent.close());

const shell = async ({ address }: Started, text: string) => (await command(address, text, root)).output;
const ask = (executionId: string) => ({ params: { executionId }, body: { snapshotId: randomUUID(), memory: true } });
const copyOf = (snapshotId: string) => agent.start({ ...SMALL, origin: { is: "snapshot", snapshotId, memory: true } });

async function mounts(): Promise<string[]> {
  const places = (await readFile("/proc/mounts", "utf8")).split("\n").map((line) => line.split(" ")[1] ?? "");
  return places.filter((place) => place.startsWith(`${agent.disks}/`));
}

async function nothingLeft(): Promise<void> {
  await expect.poll(containers, SLOW).toEqual([]);
  await expect.poll(mounts, SLOW).toEqual([]);
  const images = async () => (await readdir(agent.disks)).filter((name) => name.endsWith(".img"));
  await expect.poll(images, SLOW).toEqual([]);
  await expect.poll(() => readdir(join(agent.disks, "stored")).catch(() => []), SLOW).toEqual([]);
  // The kernel gives a loop device up when its last reader closes it, which may be another program that looks at all of them.
  const loops = async () => (await run("losetup", ["--list", "--noheadings", "--output", "BACK-FILE"])).stdout;
  await expect.poll(loops, SLOW).not.toContain(agent.disks);
}

/** The last block is taken too: what was freed while the disk was filled is free only after a commit. */
const FILL_WHOLLY = `for round in 1 2 3; do
  dd if=/dev/zero of=/root/full bs=64k oflag=append conv=notrunc 2>/dev/null
  for i in $(seq 40); do head -c 4096 /dev/zero >> /root/full; done 2>/dev/null
  sync -f /root
done
df --output=avail / | tail -1 | tr -d ' '`;

test("files can be deleted in every copy of a sandbox whose disk has not one block left, and in it after each resume", async () => {
  let one = await agent.start(SMALL);
  expect(await shell(one, FILL_WHOLLY)).toBe("0");
  const removal = "rm /root/full && echo removed";
  const { snapshotId } = await agent.call.checkpointExecution(ask(one.executionId));
  for (let round = 0; round < 6; round++) {
    const copy = await copyOf(snapshotId);
    expect(await shell(copy, removal)).toBe("removed");
    await agent.stop(copy.executionId);
  }
  for (let round = 0; round < 4; round++) {
    const taken = await agent.call.pauseExecution(ask(one.executionId));
    await agent.drop();
    const origin = { is: "paused" as const, snapshotId: taken.snapshotId, memory: true };
    one = await agent.start({ ...SMALL, sandboxId: one.sandboxId, origin });
    expect(await shell(one, FILL_WHOLLY)).toBe("0");
  }
  expect(await shell(one, removal)).toBe("removed");
  await agent.stop(one.executionId);
  await agent.call.deleteSnapshot({ params: { snapshotId } });
  await nothingLeft();
}, 600_000);

test("a sandbox starts again on a full disk whose file system takes for itself what the pause has freed", async () => {
  const begun = await agent.start(SMALL);
  expect(await shell(begun, FILL_WHOLLY)).toBe("0");
  const [place = ""] = await mounts();
  const loop = basename((await run("findmnt", ["--noheadings", "--output", "SOURCE", place])).stdout.trim());
  const taken = await agent.call.pauseExecution(ask(begun.executionId));
  await agent.drop();
  // As after bookkeeping that has used up what was kept for it: a hundred blocks have to be freed before a program gets one.
  const { bfree } = await statfs(place);
  await writeFile(`/sys/fs/ext4/${loop}/reserved_clusters`, String(bfree + 100));
  const origin = { is: "paused" as const, snapshotId: taken.snapshotId, memory: true };
  const again = await agent.start({ ...SMALL, sandboxId: begun.sandboxId, origin });
  expect(again.restored).toBe("memory");
  expect(await shell(again, "rm /root/full && echo removed")).toBe("removed");
  await agent.stop(again.executionId);
  await nothingLeft();
}, 300_000);

test("df shows the disk's size, and a full disk ends neither envd nor a pause, a resume, a fork or a neighbour", async () => {
  const [one, neighbour] = await Promise.all([agent.start(SMALL), agent.start(SMALL)]);
  expect(Number(await shell(one, "df -BM --output=size / | tail -1 | tr -d 'M '"))).toBe(100);
  const fill = "dd if=/dev/zero of=/root/full bs=64k 2>&1 | grep -o 'No space left on device'";
  expect(await shell(one, fill)).toBe("No space left on device");
  expect(await shell(neighbour, "dd if=/dev/zero of=/root/some bs=1M count=50 2>/dev/null && echo well")).toBe("well");
  await agent.stop(neighbour.executionId);

  const taken = await agent.call.pauseExecution(ask(one.executionId));
  await agent.drop();
  const origin = { is: "paused" as const, snapshotId: taken.snapshotId, memory: true };
  const again = await agent.start({ ...SMALL, sandboxId: one.sandboxId, origin });
  expect(again.restored).toBe("memory");
  expect(await shell(again, fill)).toBe("No space left on device");
  const { snapshotId } = await agent.call.checkpointExecution(ask(again.executionId));
  const copy = await copyOf(snapshotId);
  expect(copy.restored).toBe("memory");
  expect(
    await shell(copy, "rm /root/full && dd if=/dev/zero of=/root/own bs=1M count=60 2>/dev/null && echo well"),
  ).toBe("well");
  expect(await shell(again, "ls /root/own 2>&1; rm /root/full && echo runs")).toMatch(/No such file[^]*runs/);

  await Promise.all([again, copy].map(({ executionId }) => agent.stop(executionId)));
  await agent.call.deleteSnapshot({ params: { snapshotId } });
  await nothingLeft();
});

test("a disk has a limit of files too, and a sandbox without one left deletes some and goes on", async () => {
  const one = await agent.start(SMALL);
  const made = await shell(
    one,
    "mkdir /root/many && cd /root/many && seq 100000 | xargs touch 2>&1 | grep -om1 'No space left on device'",
  );
  expect(made).toBe("No space left on device");
  expect(await shell(one, "df --output=iavail / | tail -1 | tr -d ' '")).toBe("0");
  expect(await shell(one, "rm -r /root/many && touch /root/again && echo well")).toBe("well");
  await agent.stop(one.executionId);
  await nothingLeft();
});

test("a paused sandbox whose disk is not mounted, as after a reboot, gets its disk and its memory back", async () => {
  const one = await agent.start(SMALL);
  await shell(one, "echo kept > /root/file");
  const { snapshotId } = await agent.call.pauseExecution(ask(one.executionId));
  await agent.drop();
  for (const place of (await mounts()).sort().reverse()) await run("umount", [place]);
  expect(await mounts()).toEqual([]);
  // Docker describes no container whose disk is not mounted, and the agent starts all the same.
  await agent.crash();
  await agent.launch();
  const origin = { is: "paused" as const, snapshotId, memory: true };
  const again = await agent.start({ ...SMALL, sandboxId: one.sandboxId, origin });
  expect(again.restored).toBe("memory");
  expect(await shell(again, "cat /root/file")).toBe("kept");
  await agent.stop(again.executionId);
  await nothingLeft();
});

test("a paused sandbox whose file system gave up gets it back", async () => {
  const one = await agent.start(SMALL);
  await shell(one, "echo kept > /root/file; sync");
  const { snapshotId } = await agent.call.pauseExecution(ask(one.executionId));
  await agent.drop();
  const { stdout } = await run("findmnt", ["--noheadings", "--output", "SOURCE,TARGET", "--types", "ext4"]);
  const device =
    stdout
      .split("\n")
      .find((line) => line.includes(agent.disks))
      ?.split(/\s+/)[0] ?? "";
  // As after a write that the host's disk refused.
  await writeFile(`/sys/fs/ext4/${basename(device)}/trigger_fs_error`, "the test");
  const origin = { is: "paused" as const, snapshotId, memory: true };
  const again = await agent.start({ ...SMALL, sandboxId: one.sandboxId, origin });
  expect(again.restored).toBe("memory");
  expect(await shell(again, "echo more >> /root/file && cat /root/file")).toBe("kept\nmore");
  await agent.stop(again.executionId);
  await nothingLeft();
});

test("a stored disk that was cut short is reported, and harms no other sandbox", async () => {
  const one = await agent.start(SMALL);
  await shell(one, "echo kept > /root/file");
  const [damaged, whole] = [
    await agent.call.checkpointExecution(ask(one.executionId)),
    await agent.call.checkpointExecution(ask(one.executionId)),
  ];
  await truncate(join(agent.disks, "stored", `${damaged.snapshotId}.img`), 4 * 2 ** 20);
  await expect(copyOf(damaged.snapshotId)).rejects.toMatchObject({ code: "snapshot_corrupt" });
  const copy = await copyOf(whole.snapshotId);
  expect(await shell(copy, "cat /root/file")).toBe("kept");
  await Promise.all([one, copy].map(({ executionId }) => agent.stop(executionId)));
  for (const { snapshotId } of [damaged, whole]) await agent.call.deleteSnapshot({ params: { snapshotId } });
  await nothingLeft();
});

test("an agent that is killed while a disk is copied leaves the sandbox running and its disk writable", async () => {
  const one = await agent.start({ resources: { ...RESOURCES, diskSizeMB: 1024 } });
  await shell(one, "dd if=/dev/urandom of=/root/large bs=1M count=200 2>/dev/null");
  const frozen = async () => (await readdir(join(agent.disks, "stored")).catch(() => [])).length > 0;
  const request = ask(one.executionId);
  const taking = agent.call.checkpointExecution(request).catch(() => undefined);
  await expect.poll(frozen, { timeout: 90_000, interval: 1 }).toBe(true);
  await agent.crash();
  await taking;
  await agent.launch();
  expect(await shell(one, "touch /root/after && echo writable")).toBe("writable");
  const { snapshotId } = await agent.call.checkpointExecution(request);
  const copy = await copyOf(snapshotId);
  const [sum, copied] = [await shell(one, "md5sum < /root/large"), await shell(copy, "md5sum < /root/large")];
  expect(copied).toBe(sum);
  await Promise.all([one, copy].map(({ executionId }) => agent.stop(executionId)));
  await agent.call.deleteSnapshot({ params: { snapshotId } });
  await nothingLeft();
});

test("a sandbox that is ended while its disk is copied does not wait for the copy", async () => {
  const ended = async () => {
    const one = await agent.start();
    await shell(one, "head -c 400M /dev/urandom > /root/file");
    const request = ask(one.executionId);
    const taking = agent.call.checkpointExecution(request).then(
      () => "taken",
      (error: { code?: string }) => error.code,
    );
    const drafts = () => readdir(join(agent.disks, "stored")).catch(() => []);
    await expect.poll(async () => (await drafts()).length, { timeout: 90_000, interval: 5 }).toBe(1);
    await agent.stop(one.executionId);
    const answer = await taking;
    if (answer === "taken") await agent.call.deleteSnapshot({ params: { snapshotId: request.body.snapshotId } });
    await nothingLeft();
    return answer;
  };
  // A busy machine may have made the copy before this process asks for the end: then the next sandbox is tried.
  let answer = await ended();
  for (let tries = 1; tries < 4 && answer === "taken"; tries++) answer = await ended();
  expect(answer).not.toBe("taken");
});

test("a sandbox whose root Docker has left mounted, as after the kill of its daemon, is removed with its disk", async () => {
  const one = await agent.start(SMALL);
  const merged = (await mounts()).find((place) => place.endsWith("/layer/merged")) ?? "";
  // A second mount of the same place, which Docker does not know.
  await run("mount", ["--bind", merged, merged]);
  await agent.stop(one.executionId);
  await nothingLeft();
});

test("an agent that is killed while it tries out a disk leaves one that the next agent removes", async () => {
  const directory = await mkdtemp(join(tmpdir(), "svc-disks-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const kept = {
    root: join(directory, "disks"),
    copier: () => Promise.resolve(""),
    refusal: () => Promise.resolve(undefined),
  };
  // As if the agent ended after the mount.
  const cut = hostDisks({
    ...kept,
    run: (program, args, options) =>
      program === "umount" ? Promise.reject(new Error("cut")) : runCommand(program, args, options),
  });
  expect(await cut.unusable()).toContain("cut");
  const probe = join(kept.root, "probe");
  await writeFile(join(probe, "written"), "before the next agent begins");
  expect(await hostDisks({ ...kept, run: runCommand }).unusable()).toBeUndefined();
  expect((await readFile("/proc/mounts", "utf8")).includes(probe)).toBe(false);
  expect(await readdir(kept.root)).toEqual(["formatted"]);
});

test("a copier that is killed leaves no copy, and a disk that programs can write to", async () => {
  const directory = await mkdtemp(join(tmpdir(), "svc-disks-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const copier = join(directory, "copier");
  await writeFile(copier, '#!/bin/sh\n: >"$3"\nfsfreeze --freeze "$4"\nkill -KILL $$\n');
  await chmod(copier, 0o755);
  const layer = join(directory, "layer");
  for (const name of ["diff", "work"]) await mkdir(join(layer, name), { recursive: true });
  for (const name of ["link", "lower"]) await writeFile(join(layer, name), "of Docker");
  const one = hostDisks({
    root: join(directory, "disks"),
    run: runCommand,
    copier: () => Promise.resolve(copier),
    refusal: () => Promise.resolve(undefined),
  });
  await one.make({ containerId: "c", layer, sizeMb: 64, image: undefined, from: undefined });
  onTestFinished(() => one.remove("c"));
  await expect(one.store("c", "s")).rejects.toMatchObject({ code: "snapshot_failed" });
  await writeFile(join(layer, "diff", "file"), "written");
  expect(await readFile(join(one.layer("c"), "diff", "file"), "utf8")).toBe("written");
  expect((await one.list()).stored).toEqual([]);
});

test("a container gets a copy of a stored disk before the disk has its name, and while it gets the name", async () => {
  const directory = await mkdtemp(join(tmpdir(), "svc-disks-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const layerOf = async (name: string) => {
    const layer = join(directory, name);
    for (const part of ["diff", "work"]) await mkdir(join(layer, part), { recursive: true });
    for (const part of ["link", "lower"]) await writeFile(join(layer, part), `of ${name}`);
    return layer;
  };
  const naming = { now: () => Promise.resolve() };
  const disks = hostDisks({
    root: join(directory, "disks"),
    async run(program, args, options) {
      if (program === "cp" && args.some((one) => one.startsWith("/proc/"))) await naming.now();
      return runCommand(program, args, options);
    },
    copier: () => nativeProgram(runCommand, "sandbox-disks/svc-disk-copy", directory),
    refusal: () => Promise.resolve(undefined),
  });
  const make = async (containerId: string, from?: string) => {
    const layer = await layerOf(containerId);
    onTestFinished(() => disks.remove(containerId));
    await disks.make({ containerId, layer, sizeMb: 64, image: undefined, from });
    return join(disks.layer(containerId), "diff", "file");
  };
  await writeFile(await make("source"), "written");
  await disks.store("source", "s");
  expect(disks.hasStored("s")).toBe(false);
  expect(await disks.storedBytes("s")).toBeGreaterThan(0);
  expect(await readFile(await make("early", "s"), "utf8")).toBe("written");
  naming.now = () => disks.keep("s", false);
  expect(await readFile(await make("meanwhile", "s"), "utf8")).toBe("written");
  naming.now = () => Promise.resolve();
  expect(disks.hasStored("s")).toBe(true);
  expect(await readFile(await make("later", "s"), "utf8")).toBe("written");
  await expect(make("none", "another")).rejects.toMatchObject({ code: "ENOENT" });
});
