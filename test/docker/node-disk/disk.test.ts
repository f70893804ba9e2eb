/** Attacks of sandboxes on their node's disk: reservations of space, copies of files with holes, and too much data. */

import { randomUUID } from "node:crypto";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BuildState } from "../../../shared/agent-api/build-shapes.ts";
import type { Started } from "../../../shared/agent-api/routes.ts";
import { isError } from "../../../shared/http/errors.ts";
import { BASE, ORCHESTRATOR_TOKEN, RESOURCES, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";
import { background, command } from "../../support/sandbox/envd-commands.ts";

const SLOW = { timeout: 120_000, interval: 100 };
const root = { user: "root" };

/**
 * Reserves 16 MiB in every way that the kernel offers, and prints each result: an errno, or the blocks that the file got.
 */
const RESERVE = `
import ctypes, fcntl, os, struct
libc = ctypes.CDLL(None, use_errno=True)
size = 1 << 24
def tried(name, work):
    file = os.open("/root/reserved", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    got = work(file)
    print(name, got, os.fstat(file).st_blocks)
def fallocate(mode):
    def work(file):
        failed = libc.fallocate(file, mode, ctypes.c_long(0), ctypes.c_long(size)) != 0
        return ctypes.get_errno() if failed else 0
    return work
def request(number):
    def work(file):
        try:
            fcntl.ioctl(file, number, struct.pack("hhqqiI4i", 0, 0, 0, size, 0, 0, 0, 0, 0, 0))
            return 0
        except OSError as error:
            return error.errno
    return work
for mode in (0, 1, 0x10): tried(f"mode {mode}", fallocate(mode))
for number in (0x40305828, 0x4030582a, 0x40305839): tried(hex(number), request(number))
file = os.open("/root/written", os.O_RDWR | os.O_CREAT)
os.posix_fallocate(file, 0, 1 << 20)
print("written", os.fstat(file).st_size, os.fstat(file).st_blocks >= 2048)
`;

/** Holds /etc/hosts open with a lock, makes the file large, and tries to make others wait who open it. */
const HOLD = `
import fcntl, os, time
fcntl.flock(file := os.open("/etc/hosts", os.O_RDWR), fcntl.LOCK_EX)
os.ftruncate(file, 8 << 20)
try: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
except OSError as error: open("/tmp/held", "w").write(f"{os.fstat(file).st_size} {error.strerror}")
time.sleep(3000)
`;

describe("an agent of its own", () => {
  let agent: RealAgent;
  beforeAll(async () => {
    agent = await realAgent({ SVC_BUILD_LOCAL_IMAGES: "*" });
  });
  afterAll(() => agent.close());

  test("space is not reserved from inside, and a program that asks the C library for it gets it by writing", async () => {
    const { address, executionId } = await agent.start();
    const { output } = await command(address, `python3 -c '${RESERVE}'`, root);
    expect(output.split("\n")).toEqual([
      "mode 0 95 0",
      "mode 1 95 0",
      "mode 16 95 0",
      "0x40305828 1 0",
      "0x4030582a 1 0",
      "0x40305839 1 0",
      "written 1048576 True",
    ]);
    await agent.stop(executionId);
  });

  test("Docker's files that are mounted inside do not grow, even while programs hold them open, and still name the host", async () => {
    const { address, executionId } = await agent.start();
    const size = async () => Number((await command(address, "stat -c %s /etc/hosts", root)).output);
    expect((await command(address, "head -c 8M /dev/zero >> /etc/hosts", root)).code).toBe(0);
    await expect.poll(size, SLOW).toBe(2 ** 20);
    expect((await command(address, "getent hosts sandbox", root)).output).toContain("127.0.1.1");

    const pid = await background(address, `exec python3 -c '${HOLD}'`, root);
    const held = async () => (await command(address, "cat /tmp/held", root)).output;
    await expect.poll(held, SLOW).toBe("8388608 Invalid argument");
    // The agent waits for no lock: its other work continues.
    const other = await agent.start();
    expect((await command(other.address, "echo works")).output).toBe("works");
    await command(address, `kill ${pid}`, root);
    await expect.poll(size, SLOW).toBe(2 ** 20);
    await Promise.all([agent.stop(executionId), agent.stop(other.executionId)]);
  });

  test("a build that fills its disk fails with that reason", async () => {
    const buildId = randomUUID();
    await agent.call.startBuild({
      params: { buildId },
      body: {
        templateId: "t1",
        resources: { ...RESOURCES, diskSizeMB: 100 },
        from: { is: "image", image: "svc/base:latest" },
        steps: [{ type: "RUN", number: 1, force: true, command: "cat /dev/zero > /home/user/full" }],
        force: false,
        limitMs: 120_000,
      },
    });
    const state = (): Promise<BuildState> =>
      agent.call.buildState({ params: { buildId }, query: { offset: 0, limit: 100 } });
    await expect.poll(async () => (await state()).status, SLOW).toBe("error");
    expect((await state()).reason?.message).toMatch(
      /failed to run command 'cat .*; the build's disk of 100 MiB is full$/,
    );
    await agent.call.deleteBuild({ params: { buildId } });
  });

  describe("a sparse file of 6 GiB", () => {
    const NAMED = /\/home\/user\/hole\.img .*6144 MiB long .*delete it/;
    const hole = (address: string) => command(address, "truncate -s 6G /home/user/hole.img", root);
    const checkpoint = (executionId: string) =>
      agent.call.checkpointExecution({ params: { executionId }, body: { snapshotId: randomUUID(), memory: true } });

    test("stays a hole in a fork, though it is larger than the sandbox's disk", async () => {
      const { address, executionId } = await agent.start();
      await hole(address);
      const { snapshotId, diskBytes } = await checkpoint(executionId);
      expect(diskBytes).toBeLessThan(2 ** 26);
      await agent.stop(executionId);
      const copy = await agent.start({ origin: { is: "snapshot", snapshotId, memory: true } });
      expect(
        (await command(copy.address, "stat -c %s /home/user/hole.img; du -k /home/user/hole.img | cut -f1", root))
          .output,
      ).toBe(`${6 * 2 ** 30}\n0`);
      await agent.stop(copy.executionId);
      await agent.call.deleteSnapshot({ params: { snapshotId } });
    });

    test("stays a hole in a pause, which copies no disk", async () => {
      const { address, executionId, sandboxId } = await agent.start();
      await hole(address);
      const snapshotId = randomUUID();
      await agent.call.pauseExecution({ params: { executionId }, body: { snapshotId, memory: true } });
      const again = await agent.start({ sandboxId, origin: { is: "paused", snapshotId, memory: true } });
      expect((await command(again.address, "du -k /home/user/hole.img | cut -f1", root)).output).toBe("0");
      await agent.stop(again.executionId);
    });

    test("fails a build by its name", async () => {
      const buildId = randomUUID();
      await agent.call.startBuild({
        params: { buildId },
        body: {
          templateId: "t1",
          resources: RESOURCES,
          from: { is: "image", image: "svc/base:latest" },
          steps: [{ type: "RUN", number: 1, force: true, command: "truncate -s 6G /home/user/hole.img" }],
          force: false,
          limitMs: 120_000,
        },
      });
      const state = (): Promise<BuildState> =>
        agent.call.buildState({ params: { buildId }, query: { offset: 0, limit: 100 } });
      await expect.poll(async () => (await state()).status, SLOW).toBe("error");
      expect((await state()).reason?.message).toMatch(NAMED);
      await agent.call.deleteBuild({ params: { buildId } });
    });
  });
});

describe("a disk that is short", () => {
  let agent: RealAgent;
  let directory: string;
  const free = (mb: number) => writeFile(join(directory, "free"), String(mb));
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "svc-disk-"));
    await free(50_000);
    agent = await realAgent(
      { SVC_BUILD_LOCAL_IMAGES: "*", SVC_DISK_RESERVE_MB: "1000", SVC_TEST_FREE_MB: join(directory, "free") },
      new URL("../../support/agent/agent-on-a-disk.ts", import.meta.url),
    );
  });
  afterAll(async () => {
    await agent.close();
    await rm(directory, { recursive: true, force: true });
  });

  /** Starts a sandbox. The agent looks at the disk twice a second, so it may still refuse a moment after there is room. */
  const started = async (): Promise<Started> => {
    await free(50_000);
    for (;;) {
      try {
        return await agent.start();
      } catch (error) {
        if (!isError(error, "no_space")) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  };
  const held = () => (agent.heartbeats.at(-1)?.executions ?? []).filter((one) => one.held === true);
  const build = (command: string) => ({
    templateId: "t1",
    resources: RESOURCES,
    from: { is: "image" as const, image: "svc/base:latest" },
    steps: [{ type: "RUN" as const, number: 1, force: true, command }],
    force: false,
    limitMs: 120_000,
  });
  /** Writes without end but never holds more than 40 MiB, so the free space stays as the test says. */
  const WRITER = "while :; do dd if=/dev/zero of=/home/user/grown bs=1M count=40 conv=fsync status=none; done";
  const metrics = async () => {
    const headers = { authorization: `Bearer ${ORCHESTRATOR_TOKEN}` };
    return (await fetch(`${agent.url}/metrics`, { headers })).text();
  };
  const SHORT = { code: "no_space", message: expect.stringMatching(/SVC_DISK_RESERVE_MB/) as unknown };

  test("holds the sandbox that grows and no other, takes on nothing new, and lets it go on when there is room", async () => {
    const [quiet, greedy] = await Promise.all([started(), started()]);
    await background(greedy.address, WRITER);
    await free(900);
    await expect.poll(held, SLOW).toMatchObject([{ executionId: greedy.executionId }]);

    const shown = await metrics();
    expect(shown).toMatch(/^svc_sandboxes_held 1$/m);
    expect(shown).toMatch(/^svc_disk_free_bytes\{disk="sandboxes"\} 943718400$/m);
    expect(shown).toMatch(/^svc_disk_reserve_bytes\{disk="snapshots"\} 1048576000$/m);
    await expect(agent.start()).rejects.toMatchObject(SHORT);
    const buildId = randomUUID();
    await expect(agent.call.startBuild({ params: { buildId }, body: build("true") })).rejects.toMatchObject(SHORT);
    const body = () => ({ snapshotId: randomUUID(), memory: true });
    for (const { executionId } of [quiet, greedy]) {
      const params = { executionId };
      await expect(agent.call.pauseExecution({ params, body: body() })).rejects.toMatchObject(SHORT);
      await expect(agent.call.checkpointExecution({ params, body: body() })).rejects.toMatchObject(SHORT);
    }
    expect((await command(quiet.address, "echo works")).output).toBe("works");

    await free(50_000);
    await expect.poll(held, SLOW).toEqual([]);
    expect((await command(greedy.address, "pkill dd; echo works")).output).toBe("works");
    await Promise.all([agent.stop(quiet.executionId), agent.stop(greedy.executionId)]);
  });

  test("drops its warm pool, and holds no sandbox while none writes", async () => {
    const { address, executionId } = await started();
    const pooled = () => agent.heartbeats.at(-1)?.load.pools.map(({ ready }) => ready);
    agent.setPools([{ build: BASE, resources: RESOURCES, size: 1 }]);
    await expect.poll(pooled, SLOW).toEqual([1]);
    await free(900);
    await expect.poll(pooled, SLOW).toEqual([0]);
    expect(agent.heartbeats.at(-1)?.load.sandboxDisk).toMatchObject({ short: true, freeBytes: 900 * 2 ** 20 });
    expect(held()).toEqual([]);
    expect((await command(address, "echo works")).output).toBe("works");
    agent.setPools([]);
    await agent.stop(executionId);
  });

  test("memory that would use up the disk reserve is not written: the sandbox continues, and is stored when there is room", async () => {
    const { address, executionId } = await started();
    const pid = await background(
      address,
      'exec python3 -c \'import os,time; x=os.urandom(150<<20); open("/tmp/full","w"); time.sleep(1000)\'',
    );
    await expect.poll(async () => (await command(address, "test -e /tmp/full")).code, SLOW).toBe(0);
    // The disk has more room than the reserve, but not enough for the memory.
    await free(1_100);
    const params = { executionId };
    const body = () => ({ snapshotId: randomUUID(), memory: true });
    const refused = {
      code: "no_space",
      message: expect.stringMatching(/takes about 1\d\d MiB.*1100 MiB free/) as unknown,
    };
    await expect(agent.call.pauseExecution({ params, body: body() })).rejects.toMatchObject(refused);
    await expect(agent.call.checkpointExecution({ params, body: body() })).rejects.toMatchObject(refused);
    // The first snapshot creates the directory.
    expect(await readdir(agent.snapshots).catch(() => [])).toEqual([]);
    expect((await command(address, `kill -0 ${pid}`)).code).toBe(0);
    await free(50_000);
    const { snapshotId, memory } = await agent.call.pauseExecution({ params, body: body() });
    expect(memory).toBe(true);
    await agent.call.deleteSnapshot({ params: { snapshotId } });
  });

  test("a held sandbox can be stopped, and paused without its memory, which writes nothing", async () => {
    const first = await started();
    await background(first.address, WRITER);
    await free(900);
    await expect.poll(held, SLOW).toHaveLength(1);
    await agent.stop(first.executionId);
    const second = await started();
    await background(second.address, WRITER);
    await free(900);
    await expect.poll(held, SLOW).toHaveLength(1);
    const snapshotId = randomUUID();
    const params = { executionId: second.executionId };
    await agent.call.pauseExecution({ params, body: { snapshotId, memory: false } });
    const origin = { is: "paused" as const, snapshotId, memory: false };
    const again = await agent.start({ sandboxId: second.sandboxId, origin });
    expect((await command(again.address, "stat -c %s /home/user/grown")).output).not.toBe("");
    await free(50_000);
    await agent.stop(again.executionId);
  });

  test("a held sandbox stays so over the death of the agent, and the next one lets it go on", async () => {
    const { address, executionId } = await started();
    await background(address, WRITER);
    await free(900);
    await expect.poll(held, SLOW).toHaveLength(1);
    await agent.crash();
    agent.heartbeats.length = 0;
    await agent.launch();
    await expect.poll(held, SLOW).toMatchObject([{ executionId }]);
    await free(50_000);
    await expect.poll(() => agent.heartbeats.at(-1)?.executions.map((one) => one.held), SLOW).toEqual([undefined]);
    expect((await command(address, "echo works")).output).toBe("works");
    await agent.stop(executionId);
  });

  test("a build that grows fails with that reason", async () => {
    await agent.stop((await started()).executionId);
    const buildId = randomUUID();
    await agent.call.startBuild({ params: { buildId }, body: build(WRITER) });
    const state = () => agent.call.buildState({ params: { buildId }, query: { offset: 0, limit: 100 } });
    await expect.poll(async () => JSON.stringify((await state()).entries), SLOW).toContain("RUN");
    await free(900);
    await expect.poll(async () => (await state()).status, SLOW).toBe("error");
    expect((await state()).reason?.message).toMatch(/the node's disk is short/);
    await free(50_000);
    await agent.call.deleteBuild({ params: { buildId } });
  });
});
