/** What a program in a copied memory has to tell that it is a copy, so that it draws random numbers of its own. */

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RealAgent, realAgent } from "../../support/agent/real-agent.ts";
import { background, command } from "../../support/sandbox/envd-commands.ts";

const SLOW = { timeout: 60_000, interval: 100 };
const ROOT = { user: "root" };

/**
 * Keeps a page as BoringSSL does, one that is locked too, and an ordinary one. Writes which of them still have their
 * content, and whether the file with the execution's id has changed.
 */
const PROGRAM = `
import ctypes, mmap, os, time
libc = ctypes.CDLL(None)
pages = [mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(3)]
for index, page in enumerate(pages):
    page[0] = 65 + index
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    if index < 2: assert libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), 18) == 0
    if index == 1: assert libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE)) == 0
execution = lambda: open("/run/svc/execution-id").read()
first = execution()
while True:
    with open("/tmp/new", "w") as file:
        print("".join(chr(page[0]) if page[0] else "-" for page in pages), int(execution() != first), file=file)
    os.rename("/tmp/new", "/tmp/seen")
    time.sleep(0.05)
`;

/** Draws when the test says so, behind the example of the documentation, and from a generator that the example leaves out. */
const DRAW = `
import time
left_out = random.Random(5)
seed_again()
open("/tmp/seeded", "w").close()
while not os.path.exists("/tmp/draw"): time.sleep(0.05)
seed_again()
with open("/tmp/new", "w") as file:
    print(random.random(), ssl.RAND_bytes(8).hex(), left_out.random(), file=file)
os.rename("/tmp/new", "/tmp/drawn")
`;

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent();
});
afterAll(() => agent.close());

const seen = async (address: string) => (await command(address, "cat /tmp/seen", ROOT)).output;
const execution = async (address: string) => (await command(address, "cat /run/svc/execution-id", ROOT)).output;

test("a copy and a resume from the disk find pages of wipe-on-fork empty, and the file with the execution's id changed", async () => {
  const source = await agent.start();
  expect(await execution(source.address)).toBe(source.executionId);
  const script = Buffer.from(PROGRAM).toString("base64");
  await background(source.address, `echo ${script} | base64 -d >/tmp/pages.py; exec python3 /tmp/pages.py`, ROOT);
  await expect.poll(() => seen(source.address), SLOW).toBe("ABC 0");

  const checkpoint = randomUUID();
  const { executionId } = source;
  await agent.call.checkpointExecution({ params: { executionId }, body: { snapshotId: checkpoint, memory: true } });
  const origin = { is: "snapshot", snapshotId: checkpoint, memory: true } as const;
  const copies = [await agent.start({ origin }), await agent.start({ origin })];
  for (const copy of copies) {
    expect(copy.restored).toBe("memory");
    await expect.poll(() => seen(copy.address), SLOW).toBe("--C 1");
    expect(await execution(copy.address)).toBe(copy.executionId);
  }
  // The dump took nothing from the source.
  expect(await seen(source.address)).toBe("ABC 0");

  const snapshotId = randomUUID();
  await agent.call.pauseExecution({ params: { executionId }, body: { snapshotId, memory: true, frozen: false } });
  const resumed = await agent.start({
    sandboxId: source.sandboxId,
    origin: { is: "paused", snapshotId, memory: true },
  });
  expect(resumed.restored).toBe("memory");
  await expect.poll(() => seen(resumed.address), SLOW).toBe("--C 1");
  expect(await execution(resumed.address)).toBe(resumed.executionId);
  await Promise.all([...copies, resumed].map((one) => agent.stop(one.executionId)));
});

test("the example of the documentation draws numbers of its own in each copy; a generator that it leaves out draws the same", async () => {
  const page = await readFile(new URL("../../../docs/using.md", import.meta.url), "utf8");
  const example = /\*\*Random numbers in copies\.\*\*[^]*?```python\n([^]*?)```/.exec(page)?.[1] ?? "";
  const source = await agent.start();
  const script = Buffer.from(`${example}${DRAW}`).toString("base64");
  await background(source.address, `echo ${script} | base64 -d >/tmp/draw.py; exec python3 /tmp/draw.py`, ROOT);
  await expect.poll(async () => (await command(source.address, "ls /tmp/seeded", ROOT)).code, SLOW).toBe(0);

  const snapshotId = randomUUID();
  const params = { executionId: source.executionId };
  await agent.call.checkpointExecution({ params, body: { snapshotId, memory: true } });
  const origin = { is: "snapshot", snapshotId, memory: true } as const;
  const copies = [await agent.start({ origin }), await agent.start({ origin })];
  expect(copies.map(({ restored }) => restored)).toEqual(["memory", "memory"]);
  const all = [source, ...copies];
  const rows: string[][] = [];
  for (const { address } of all) {
    await command(address, "touch /tmp/draw", ROOT);
    const drawn = async () => (await command(address, "cat /tmp/drawn", ROOT)).output;
    await expect.poll(drawn, SLOW).toMatch(/^[\d.e-]+ [\da-f]{16} [\d.e-]+$/);
    rows.push((await drawn()).split(" "));
  }
  expect([0, 1, 2].map((column) => new Set(rows.map((row) => row[column])).size)).toEqual([3, 3, 1]);
  await Promise.all(all.map(({ executionId }) => agent.stop(executionId)));
});
