/**
 * A sandbox whose memory and disk a test can check byte for byte: a Python process holds random megabytes on its heap, a
 * file in memory holds half as many, and a tree of files lies on the disk. The test knows their hashes.
 */

import type { Sandbox } from "e2b";
import { expect } from "vitest";

/** The process hashes its heap on each request; its counter tells a pause from a new start. */
const KEEPER = `
import hashlib, os, signal, sys, threading, time
heap = bytearray(os.urandom(int(sys.argv[1]) << 20))
def answer(*_):
    with open("/tmp/answer.new", "w") as out:
        out.write(hashlib.sha256(heap).hexdigest())
    os.rename("/tmp/answer.new", "/tmp/answer")
signal.signal(signal.SIGUSR1, answer)
answer()
count = 0
while True:
    count += 1
    with open("/dev/shm/count", "w") as out:
        out.write(str(count))
    time.sleep(0.05)
`;

/** A machine with two cores can be busy. */
const SLOW = { timeout: 90_000 };

const TREE = `
mkdir -p tree && cd tree
for i in $(seq 1 40); do mkdir -p d$((i % 8)); head -c 20000 /dev/urandom > d$((i % 8))/f$i; ln -sf f$i d$((i % 8))/l$i; done
`;

const HASHES = `
sha256sum /dev/shm/block | cut -d' ' -f1
(find tree -type l -printf '%p %l\\n'; find tree -type f -exec sha256sum {} +) | sort | sha256sum | cut -d' ' -f1
`;

export interface Kept {
  readonly pid: number;
  readonly heap: string;
  readonly files: string;
}

/** @param megabytes the size of the heap; half as many go to /dev/shm, which holds 64 MB */
export async function fillMemory(sandbox: Sandbox, megabytes: number): Promise<Kept> {
  await sandbox.files.write("keeper.py", KEEPER);
  await sandbox.commands.run(`head -c ${megabytes / 2}M /dev/urandom > /dev/shm/block; ${TREE}`);
  const { pid } = await sandbox.commands.run(`exec python3 keeper.py ${megabytes}`, {
    background: true,
    timeoutMs: 0,
  });
  await expect.poll(() => sandbox.files.exists("/tmp/answer"), SLOW).toBe(true);
  return { pid, heap: await sandbox.files.read("/tmp/answer"), files: await fileHashes(sandbox) };
}

/** Expects the same process with the same bytes, which goes on counting. */
export async function expectKept(sandbox: Sandbox, kept: Kept): Promise<void> {
  await sandbox.commands.run(`rm -f /tmp/answer && kill -USR1 ${kept.pid}`);
  await expect.poll(() => sandbox.files.exists("/tmp/answer"), SLOW).toBe(true);
  expect(await sandbox.files.read("/tmp/answer")).toBe(kept.heap);
  expect(await fileHashes(sandbox)).toBe(kept.files);
  const count = async () => Number((await sandbox.files.read("/dev/shm/count")).trim() || "0");
  const then = await count();
  await expect.poll(count, SLOW).toBeGreaterThan(then);
}

/** Expects the files on the disk, byte for byte; the memory is gone. */
export async function expectOnDisk(sandbox: Sandbox, kept: Kept): Promise<void> {
  const tree = (hashes: string) => hashes.trim().split("\n").at(-1);
  expect(tree(await fileHashes(sandbox))).toBe(tree(kept.files));
}

async function fileHashes(sandbox: Sandbox): Promise<string> {
  return (await sandbox.commands.run(HASHES, { timeoutMs: 60_000 })).stdout;
}
