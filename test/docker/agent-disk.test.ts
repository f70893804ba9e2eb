/** What a sandbox can do to the disk of its node: space from nothing, by a reservation or by a copy of a hole. */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BuildState } from "../../shared/build-shapes.ts";
import { command } from "../support/envd-commands.ts";
import { RESOURCES, type RealAgent, realAgent } from "../support/real-agent.ts";

const SLOW = { timeout: 60_000, interval: 100 };
const root = { user: "root" };

/** Reserves 16 MiB in every way the kernel knows, and prints what came of it: an errno, or how much the file got. */
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

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent();
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

describe("a sparse file of 6 GiB", () => {
  const NAMED = /\/home\/user\/hole\.img .*6144 MiB long .*delete it/;
  const hole = (address: string) => command(address, "truncate -s 6G /home/user/hole.img", root);
  const checkpoint = (executionId: string) =>
    agent.call.checkpointExecution({ params: { executionId }, body: { snapshotId: randomUUID(), memory: true } });

  test("is not copied into a fork: the refusal names it, the sandbox goes on, and the next one works without it", async () => {
    const { address, executionId } = await agent.start();
    await hole(address);
    await expect(checkpoint(executionId)).rejects.toMatchObject({ code: "failed_precondition", message: NAMED });
    expect((await command(address, "echo runs; rm /home/user/hole.img", root)).output).toBe("runs");
    const { snapshotId, diskBytes } = await checkpoint(executionId);
    expect(diskBytes).toBeLessThan(2 ** 30);
    await agent.stop(executionId);
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
