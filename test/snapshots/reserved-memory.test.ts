/** A process that has reserved more memory than the machine has, and uses little of it, as browsers and many runtimes do. */

import { randomUUID } from "node:crypto";
import { totalmem } from "node:os";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { background, command } from "../support/sandbox/envd-commands.ts";

const SLOW = { timeout: 60_000, interval: 100 };

let agent: RealAgent;
beforeAll(async () => {
  agent = await realAgent();
});
afterAll(() => agent.close());

/** Reserves twice the machine's memory without a right to it, makes its first page usable, and counts there. */
const program = `
import ctypes, mmap, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
size = ${2 * totalmem()}
place = libc.mmap(None, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
assert place != ctypes.c_void_p(-1).value, ctypes.get_errno()
assert libc.mprotect(place, 4096, 3) == 0, ctypes.get_errno()
number = ctypes.c_long.from_address(place)
while True:
    number.value += 1
    open("/tmp/number", "w").write(str(number.value))
    time.sleep(0.1)
`;

test("a process that reserved more memory than the machine has goes on after a pause, and in a copy", async () => {
  const first = await agent.start();
  const encoded = Buffer.from(program).toString("base64");
  await background(first.address, `echo ${encoded} | base64 -d | python3 - > /tmp/said 2>&1`);
  const number = async (address: string) => {
    const { output } = await command(address, "cat /tmp/number 2>/dev/null || cat /tmp/said");
    return output === "" ? 0 : Number(output);
  };
  await expect.poll(() => number(first.address), SLOW).toBeGreaterThan(3);
  const ask = (executionId: string) => ({ params: { executionId }, body: { snapshotId: randomUUID(), memory: true } });

  const { snapshotId } = await agent.call.checkpointExecution(ask(first.executionId));
  const copy = await agent.start({ origin: { is: "snapshot", snapshotId, memory: true } });
  expect(copy.restored).toBe("memory");
  const then = await number(copy.address);
  await expect.poll(() => number(copy.address), SLOW).toBeGreaterThan(Math.max(then, 3));

  const pause = await agent.call.pauseExecution(ask(first.executionId));
  await agent.drop();
  const origin = { is: "paused" as const, snapshotId: pause.snapshotId, memory: true };
  const again = await agent.start({ sandboxId: first.sandboxId, origin });
  expect(again.restored).toBe("memory");
  const before = await number(again.address);
  await expect.poll(() => number(again.address), SLOW).toBeGreaterThan(Math.max(before, 3));
  await Promise.all([copy, again].map(({ executionId }) => agent.stop(executionId)));
  await agent.call.deleteSnapshot({ params: { snapshotId } });
});
