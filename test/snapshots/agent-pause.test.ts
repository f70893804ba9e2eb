/** Pause and resume on the real Docker daemon: from a frozen container, from memory on the disk, and from the disk alone. */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { open, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { containers, type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { connected } from "../support/connections/echo.ts";
import { background, command, createWatcher, watchedNames } from "../support/sandbox/envd-commands.ts";

const run = promisify(execFile);
const SLOW = { timeout: 90_000, interval: 100 };
/** Much longer than the age of a time that a sandbox has written down last, also on a busy machine. */
const PAUSE_S = 6;
// The program counts in memory and writes the count down.
const COUNTER = "i=0; while :; do i=$((i+1)); echo $i > /tmp/count.new; mv /tmp/count.new /tmp/count; sleep 0.05; done";
const HOLD = `python3 -c "
import hashlib, os, time
data = os.urandom(64 << 20)
while True:
    open('/tmp/hash.new', 'w').write(hashlib.sha256(data).hexdigest())
    os.rename('/tmp/hash.new', '/tmp/hash')
    time.sleep(0.2)
"`;

const count = async (address: string) => Number((await command(address, "cat /tmp/count")).output);

describe("pause and resume", () => {
  let agent: RealAgent;
  beforeAll(async () => {
    agent = await realAgent({ SVC_FROZEN_SECONDS: "3600" });
  });
  afterAll(() => agent.close());

  const pause = (executionId: string, memory = true, snapshotId: string = randomUUID()) =>
    agent.call.pauseExecution({ params: { executionId }, body: { snapshotId, memory } });
  const resume = ({ sandboxId }: Started, snapshotId: string, memory = true) =>
    agent.start({ sandboxId, origin: { is: "paused", snapshotId, memory } });
  const storedOf = async (sandboxId: string) => {
    const seen = agent.heartbeats.length;
    await expect.poll(() => agent.heartbeats.length, SLOW).toBeGreaterThan(seen + 1);
    return agent.heartbeats.at(-1)?.snapshots.filter((one) => one.sandboxId === sandboxId);
  };
  const busy = async (started: Started) => {
    const { address } = started;
    const pid = await background(address, COUNTER);
    await background(address, HOLD);
    await background(address, "python3 -m http.server 8000");
    await command(address, "head -c 1000000 /dev/urandom > ~/file; head -c 1000000 /dev/urandom > /dev/shm/file");
    await expect.poll(() => count(address)).toBeGreaterThan(3);
    await expect.poll(async () => (await command(address, "cat /tmp/hash")).output).toHaveLength(64);
    const sums = () => command(address, "sha256sum ~/file /dev/shm/file; cat /tmp/hash");
    return { pid, sums: await sums() };
  };

  test("processes, memory and files are there after each resume, from frozen memory and from the disk, and no time has passed", async () => {
    let started = await agent.start();
    const { pid, sums } = await busy(started);
    for (const [index, round] of ["frozen", "memory", "frozen", "memory"].entries()) {
      const begun = performance.now();
      const before = await count(started.address);
      const taken = await pause(started.executionId);
      const pausedAt = performance.now();
      expect(taken).toMatchObject({ memory: true, sandboxId: started.sandboxId });
      expect(taken.memoryBytes).toBeGreaterThan(60_000_000);
      if (round === "memory") await agent.drop();
      if (index === 3) {
        await agent.crash();
        await agent.launch();
      }
      const resuming = performance.now();
      started = await resume(started, taken.snapshotId);
      expect(started.restored).toBe(round);
      const after = await count(started.address);
      // It counts at most twenty times a second, until the pause is there and since the resume was asked for.
      const awakeMs = pausedAt - begun + performance.now() - resuming;
      expect(after - before).toBeLessThan(awakeMs / 50 + 10);
      await expect.poll(() => count(started.address)).toBeGreaterThan(after);
      expect((await command(started.address, `cat /proc/${pid}/cmdline | tr '\\0' ' '`)).output).toContain("while");
      const { address } = started;
      expect(await command(address, "sleep 0.5; sha256sum ~/file /dev/shm/file; cat /tmp/hash")).toEqual(sums);
      expect((await fetch(`http://${address}:8000/`)).status).toBe(200);
    }
    await agent.stop(started.executionId);
    await expect.poll(containers, SLOW).toEqual([]);
  });

  test.each([
    ["is kept frozen counts for the clock of timers", undefined, "frozen"],
    ["is not kept frozen does not, because its resume is one from the disk", false, "memory"],
  ])("a pause that %s", async (_name, frozen, restored) => {
    const started = await agent.start();
    const clock = "import time; open('/tmp/clock.new', 'w').write(str(time.monotonic()))";
    await background(started.address, `while :; do python3 -c "${clock}"; mv /tmp/clock.new /tmp/clock; done`);
    const at = async (address: string) => Number((await command(address, "cat /tmp/clock")).output);
    await expect.poll(() => at(started.address), SLOW).toBeGreaterThan(0);
    const snapshotId = randomUUID();
    const params = { executionId: started.executionId };
    // The second change that is seen was written down after this moment.
    const earlier = performance.now();
    for (const _ of [1, 2]) {
      const last = await at(started.address);
      await expect.poll(() => at(started.address), SLOW).toBeGreaterThan(last);
    }
    const before = await at(started.address);
    const begun = performance.now();
    const body = { snapshotId, memory: true, ...(frozen === undefined ? {} : { frozen }) };
    await agent.call.pauseExecution({ params, body });
    await delay(PAUSE_S * 1_000);
    const again = await resume(started, snapshotId);
    expect(again.restored).toBe(restored);
    const first = await at(again.address);
    await expect.poll(() => at(again.address), SLOW).toBeGreaterThan(first + 1);
    // The times inside are some tenths of a second old when they are read, or seconds on a busy machine.
    const leftOut = async (since: number) => (performance.now() - since) / 1_000 - ((await at(again.address)) - before);
    if (frozen === false) expect(await leftOut(earlier)).toBeGreaterThan(PAUSE_S / 2);
    else await expect.poll(() => leftOut(begun), SLOW).toBeLessThan(PAUSE_S / 2);
    await agent.stop(again.executionId);
  });

  test("from disk alone files are there and processes are not, and stored memory is left as it was", async () => {
    const first = await agent.start();
    await background(first.address, COUNTER);
    await command(first.address, "echo kept > ~/file");
    const bootId = async (address: string) => (await command(address, "cat /proc/sys/kernel/random/boot_id")).output;
    const before = await bootId(first.address);
    const stored = await pause(first.executionId);
    await agent.drop();
    const restored = await resume(first, stored.snapshotId);
    expect(await bootId(restored.address)).toBe(before);
    const { snapshotId, memoryBytes } = await pause(restored.executionId);
    const second = await resume(first, snapshotId, false);
    expect(await bootId(second.address)).not.toBe(before);
    expect(second.restored).toBe("disk");
    expect((await command(second.address, "cat ~/file; pgrep -c sleep")).output).toBe("kept\n0");
    // The node removes what an earlier pause has stored in the background.
    await expect.poll(() => storedOf(second.sandboxId), SLOW).toMatchObject([{ snapshotId, memoryBytes }]);
    await agent.call.deleteSnapshot({ params: { snapshotId } });
    expect((await command(second.address, "cat ~/file")).output).toBe("kept");
    const cold = await pause(second.executionId, false);
    expect(cold).toMatchObject({ memory: false, memoryBytes: 0 });
    const third = await resume(second, cold.snapshotId);
    expect(third.restored).toBe("disk");
    expect((await command(third.address, "cat ~/file")).output).toBe("kept");
    await agent.stop(third.executionId);
    await expect.poll(containers, SLOW).toEqual([]);
  });

  test("a repeated pause is one pause, another pause at the same time is refused, and a pause can be deleted", async () => {
    const started = await agent.start();
    const snapshotId = randomUUID();
    const [one, two] = await Promise.all([
      pause(started.executionId, true, snapshotId),
      pause(started.executionId, true, snapshotId),
    ]);
    expect(two).toEqual(one);
    // Nothing is written this time, so nothing took any.
    expect(await pause(started.executionId, true, snapshotId)).toEqual({ ...one, times: undefined });
    await expect(pause(started.executionId)).rejects.toMatchObject({ code: "sandbox_not_found" });
    await agent.call.deleteSnapshot({ params: { snapshotId } });
    await expect.poll(containers, SLOW).toEqual([]);
    await expect(resume(started, snapshotId)).rejects.toMatchObject({ code: "snapshot_files_missing" });
    expect(await readdir(agent.snapshots)).not.toContain(snapshotId);
    expect(agent.exits).toEqual([]);
  });

  test("a damaged memory image is reported, and the disk still boots", async () => {
    const started = await agent.start();
    await command(started.address, "echo kept > ~/file");
    const { snapshotId } = await pause(started.executionId);
    await agent.drop();
    const images = join(agent.snapshots, snapshotId, "images");
    const [pages = ""] = (await readdir(images)).filter((name) => name.startsWith("pages-"));
    const file = await open(join(images, pages), "r+");
    await file.write(Buffer.from("damaged"), 0, 7, 5_000);
    await file.close();
    await expect(resume(started, snapshotId)).rejects.toMatchObject({ code: "snapshot_corrupt" });
    await rm(join(images, "inventory.img"));
    await expect(resume(started, snapshotId)).rejects.toMatchObject({ code: "snapshot_files_missing" });
    const again = await resume(started, snapshotId, false);
    expect((await command(again.address, "cat ~/file")).output).toBe("kept");
    await agent.stop(again.executionId);
  });

  // The time of the change is put into the manifest, so that the files count as untouched and are checked beside the restore.
  test.each([
    ["pages-", "memory, with which CRIU restores"],
    ["pstree", "the list of processes, with which CRIU fails before the check is through"],
  ])("damage that left no trace in a file's times is reported: %s (%s)", async (prefix) => {
    const started = await agent.start();
    const { snapshotId } = await pause(started.executionId);
    await agent.drop();
    const directory = join(agent.snapshots, snapshotId);
    const [name = ""] = (await readdir(join(directory, "images"))).filter((one) => one.startsWith(prefix));
    const path = join(directory, "images", name);
    const { size } = await stat(path);
    const file = await open(path, "r+");
    await file.write(Buffer.from("damaged"), 0, 7, Math.min(5_000, size - 7));
    await file.close();
    const manifest = JSON.parse(await readFile(join(directory, "manifest.json"), "utf8")) as {
      readonly files: { readonly name: string; changedAt: number }[];
    };
    for (const each of manifest.files) each.changedAt = (await stat(join(directory, "images", each.name))).ctimeMs;
    await writeFile(join(directory, "manifest.json"), JSON.stringify(manifest));
    await expect(resume(started, snapshotId)).rejects.toMatchObject({ code: "snapshot_corrupt" });
    const again = await resume(started, snapshotId, false);
    await agent.stop(again.executionId);
  });

  test("watches are armed again, and a watched file is seen after a resume", async () => {
    const started = await agent.start();
    const watcherId = await createWatcher(started.address, "/home/user");
    const { snapshotId } = await pause(started.executionId);
    await agent.drop();
    const again = await resume(started, snapshotId);
    await command(again.address, "touch ~/new");
    await expect.poll(() => watchedNames(again.address, watcherId)).toContain("new");
    await agent.stop(again.executionId);
  });

  test("a sandbox that cannot be stored continues to run, and the answer has the reason", async () => {
    const started = await agent.start();
    await background(
      started.address,
      'exec python3 -c "import ctypes,time;l=ctypes.CDLL(None);l.ptrace(0,0,0,0);time.sleep(1000)"',
    );
    const queue =
      "import ctypes,time;l=ctypes.CDLL('librt.so.1');print(l.mq_open(b'/q',66,384,None),flush=True);time.sleep(1000)";
    const opened = await background(started.address, `exec python3 -c "${queue}"`);
    await expect
      .poll(async () => (await command(started.address, `ls -l /proc/${opened}/fd`)).output, SLOW)
      .toContain("/q");
    await expect(pause(started.executionId)).rejects.toMatchObject({ code: "snapshot_failed" });
    expect((await command(started.address, "echo runs")).output).toBe("runs");
    expect(await storedOf(started.sandboxId)).toEqual([]);
    expect((await readdir(agent.snapshots)).filter((name) => name.startsWith("."))).toEqual([]);
    await agent.stop(started.executionId);
  });

  test("a frozen sandbox that dies leaves memory, stays on the disk, and is not reported as an exit", async () => {
    const started = await agent.start();
    await background(started.address, COUNTER);
    await expect.poll(() => count(started.address)).toBeGreaterThan(1);
    const { snapshotId } = await pause(started.executionId);
    await run("docker", ["kill", `svc-${started.sandboxId}`]).catch(() => undefined);
    await expect.poll(containers, SLOW).toMatchObject([{ state: "exited" }]);
    const again = await resume(started, snapshotId);
    expect(again.restored).toBe("memory");
    expect(agent.exits).toEqual([]);
    await agent.stop(again.executionId);
  });
});

describe("checkpoints", () => {
  let agent: RealAgent;
  beforeAll(async () => {
    agent = await realAgent();
  });
  afterAll(() => agent.close());

  const checkpoint = (executionId: string, memory = true, snapshotId: string = randomUUID()) =>
    agent.call.checkpointExecution({ params: { executionId }, body: { snapshotId, memory } });
  const copy = (snapshotId: string, memory = true) => agent.start({ origin: { is: "snapshot", snapshotId, memory } });

  test("the original goes on, and copies have its memory and files, but nothing of its identity", async () => {
    const source = await agent.start();
    const pid = await background(source.address, COUNTER);
    await command(source.address, "echo here > ~/file");
    await expect.poll(() => count(source.address)).toBeGreaterThan(3);
    const echo = await connected(source.address);
    expect(await echo.say("before")).toBe("before");
    const taken = await checkpoint(source.executionId);
    expect(await echo.say("after")).toBe("after");
    echo.end();
    const copies = await Promise.all([copy(taken.snapshotId), copy(taken.snapshotId), copy(taken.snapshotId)]);
    for (const started of copies) {
      expect(started.restored).toBe("memory");
      const { address } = started;
      expect((await command(address, `cat ~/file /proc/${pid}/comm`)).output).toBe("here\nbash");
      const at = await count(address);
      await expect.poll(() => count(address)).toBeGreaterThan(at);
    }
    const at = await count(source.address);
    await expect.poll(() => count(source.address)).toBeGreaterThan(at);
    const ids = await Promise.all(
      copies.map(async ({ address }) => (await command(address, "echo $SVC_SANDBOX_ID")).output),
    );
    expect(ids).toEqual(copies.map(({ sandboxId }) => sandboxId));
    // envd makes these names: with a copied random generator the first name after the copy would be the same in all copies.
    const names = await Promise.all(copies.map(({ address }) => createWatcher(address, "/tmp")));
    expect(new Set(names).size).toBe(3);
    const cold = await copy(taken.snapshotId, false);
    expect(cold.restored).toBe("disk");
    expect((await command(cold.address, "cat ~/file; pgrep -c sleep")).output).toBe("here\n0");
    await Promise.all([source, cold, ...copies].map(({ executionId }) => agent.stop(executionId)));
    const late = await copy(taken.snapshotId);
    await agent.call.deleteSnapshot({ params: { snapshotId: taken.snapshotId } });
    await expect(copy(taken.snapshotId)).rejects.toMatchObject({ code: "snapshot_files_missing" });
    expect((await command(late.address, "cat ~/file")).output).toBe("here");
    await agent.stop(late.executionId);
    await expect.poll(containers, SLOW).toEqual([]);
  });
});
