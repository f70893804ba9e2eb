/** Root inside a sandbox reads no facts about the host's memory, kernel and devices, before and after a restore. */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Started } from "../../../shared/agent-api/routes.ts";
import { inside, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";

/** Prints how many bytes root reads of each file, and how many names of each directory; nothing for an absent file. */
const LOOK = `
import json, os
def size(path):
    if os.path.isdir(path): return len(os.listdir(path))
    try:
        with open(path, "rb") as file: return len(file.read(65536))
    except OSError: return 0
hidden = """buddyinfo iomem ioports kallsyms kpagecgroup kpagecount kpageflags modules pagetypeinfo schedstat slabinfo softirqs
vmallocinfo zoneinfo kcore keys interrupts timer_list sched_debug""".split()
needed = "cpuinfo meminfo stat loadavg uptime version filesystems mounts".split()
print(json.dumps({
    "told": [name for name in hidden if size("/proc/" + name) > 0] + [n for n in ["/sys/kernel/slab"] if size(n) > 0],
    "missing": [name for name in needed if size("/proc/" + name) == 0],
}))
`;

let agent: RealAgent;
let sandbox: Started;
const nothingTold = { told: [], missing: [] };

beforeAll(async () => {
  agent = await realAgent();
  sandbox = await agent.start();
});
afterAll(() => agent.close());

async function look(sandboxId: string): Promise<unknown> {
  const { code, output } = await inside(sandboxId, "root", "python3", "-c", LOOK);
  expect(code, output).toBe(0);
  return JSON.parse(output) as unknown;
}

test("root reads no facts about the host in a sandbox that was just started", async () => {
  expect(await look(sandbox.sandboxId)).toEqual(nothingTold);
});

test("root reads no facts about the host in a copy that was restored from memory", async () => {
  const snapshotId = randomUUID();
  const { executionId } = sandbox;
  const { memory } = await agent.call.checkpointExecution({
    params: { executionId },
    body: { snapshotId, memory: true },
  });
  expect(memory).toBe(true);
  const copy = await agent.start({ origin: { is: "snapshot", snapshotId, memory: true } });
  // The sandbox must end even after a failure: the next test's agent waits until nothing runs.
  onTestFinished(async () => {
    await agent.stop(copy.executionId);
    await agent.call.deleteSnapshot({ params: { snapshotId } });
  });
  expect(copy.restored).toBe("memory");
  expect(await look(copy.sandboxId)).toEqual(nothingTold);
});

test("root reads no facts about the host in a sandbox that was paused and restored from memory", async () => {
  const snapshotId = randomUUID();
  const { executionId, sandboxId } = sandbox;
  await agent.call.pauseExecution({ params: { executionId }, body: { snapshotId, memory: true } });
  await agent.drop();
  const again = await agent.start({ sandboxId, origin: { is: "paused", snapshotId, memory: true } });
  expect(again.restored).toBe("memory");
  expect(await look(sandboxId)).toEqual(nothingTold);
});
