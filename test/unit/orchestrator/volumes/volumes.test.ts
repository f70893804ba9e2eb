/** A volume that is ready is never deleted by the repair of its own creation. */

import { expect, test } from "vitest";
import { createVolumeWork, type VolumesDeps } from "../../../../orchestrator/volumes/volumes.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { loop } from "../../../../shared/program/loop.ts";

/** A store in which the volume has become ready meanwhile, so that nothing gives it up; `calls` has what its node was asked. */
function world(store: object) {
  const calls: string[] = [];
  const call = (name: string) => () => Promise.resolve(void calls.push(name));
  const node = {
    id: "n1",
    status: "ready",
    labels: {},
    facts: { capabilities: { volumes: true } },
    cpuCount: 8,
    cpuPercent: 0,
    memoryTotalBytes: 2 ** 40,
    allocatedCpu: 0,
    allocatedMemoryBytes: 0,
    sandboxCount: 0,
    maxSandboxes: 100,
  };
  const work = createVolumeWork({
    rounds: loop,
    store: { giveUp: () => Promise.resolve(false), ...store },
    nodes: {
      list: () => [node],
      candidates: () => [node],
      agent: () => ({ makeVolume: call("make"), deleteVolume: call("delete") }),
    },
    background: { run: (_name: string, work: () => Promise<void>) => void work() },
    placement: { cpuOvercommit: 1, memoryOvercommit: 1, diskOvercommit: 1 },
    limits: () => ({ count: 1, totalMb: 0 }),
    sizeMb: 64,
    timeoutMs: 1,
    repairEveryMs: 60_000,
    now: () => 0,
    random: () => 0,
    log: createLog({ component: "test", level: "silent" }),
  } as unknown as VolumesDeps);
  return { work, calls };
}

test("a creation whose record was written although its answer was lost fails, and its volume stays", async () => {
  const { work, calls } = world({
    add: () => Promise.resolve(undefined),
    markReady: () => Promise.reject(new Error("the connection was lost")),
  });
  await expect(work.create({ id: "p" } as never, "name")).rejects.toThrow("the connection was lost");
  expect(calls).toEqual(["make"]);
});

test("a creation that ends while the repairs look at it is left alone", async () => {
  const late = [{ id: "v", projectId: "p", name: "name", nodeId: "n1", sizeMb: 64, state: "creating" }];
  let looks = 0;
  const { work, calls } = world({
    unfinished: () => Promise.resolve(late),
    giveUp: () => {
      looks++;
      return Promise.resolve(false);
    },
  });
  const repairs = work.startRepairs();
  await expect.poll(() => looks).toBeGreaterThan(0);
  await repairs.stop();
  expect(calls).toEqual([]);
});
