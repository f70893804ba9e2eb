/** Sandboxes of another size than the pool's containers, on a machine in memory: claimed, cut off, paused and copied. */

import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { dockerLimits } from "../../../../agent/containers/cgroup/limits.ts";
import { promised } from "../../../../agent/sandboxes/pool/refill-plan.ts";
import { agentParts, build, resources, startRequest } from "../../../support/fakes/agent-parts.ts";
import { again, machineForEach, snapshotRequest } from "../machine.ts";

const here = machineForEach();
const { takeOver } = here;

const SMALL = { ...resources, cpuCount: 1, memoryMB: 256 };
const LARGE = { ...resources, cpuCount: 4, memoryMB: 2_048 };
const sizeOf = ({ cpuCount, memoryMB }: typeof resources) => ({ cpuCount, memoryMB });
const targets = [{ build, resources, size: 1 }];

/** Waits for one pooled container and keeps the pool from making more. */
async function pooled(): Promise<string> {
  here.parts.pool.setTargets(targets);
  await expect.poll(() => here.parts.pool.load()[0]?.ready).toBe(1);
  here.parts.pool.setFilling(false);
  return here.parts.pool.ids()[0] ?? "";
}

const start = (more: object, executionId: string = randomUUID()) =>
  here.parts.sandboxes.start(executionId, startRequest(more)).then((answer) => ({ ...answer, executionId }));
const container = (executionId: string) => {
  const id = here.parts.sandboxes.get(executionId)?.container.id ?? "";
  const found = here.engine.containers.get(id);
  if (found === undefined) throw new Error("the sandbox has no container");
  return found;
};

describe("a claim", () => {
  test.each([SMALL, LARGE])("of another size gets the pooled container with that size: %j", async (asked) => {
    const id = await pooled();
    const { executionId, warm } = await start({ resources: asked });
    expect(warm).toBe(true);
    expect(container(executionId)).toMatchObject({ id, size: sizeOf(asked), frozen: false });
    const { steps } = here.engine;
    expect(steps.indexOf("resize")).toBeLessThan(steps.lastIndexOf("thaw"));
    expect(here.parts.stores.containers.all()).toMatchObject([{ id, resources: asked }]);
    const live = here.parts.sandboxes.running().map(({ container: one }) => one.resources);
    expect(promised(live)).toEqual({ cpu: asked.cpuCount, memoryBytes: asked.memoryMB * 2 ** 20 });
    // Docker hears of it later, after the first command.
    expect(container(executionId).limits).toEqual(dockerLimits(resources));
    await expect.poll(() => container(executionId).limits).toEqual(dockerLimits(asked));
  });

  test("of the pool's size changes no limit and tells Docker none", async () => {
    await pooled();
    const { executionId, warm } = await start({});
    expect(warm).toBe(true);
    await expect.poll(() => here.engine.steps).toContain("rename");
    expect(here.engine.steps.filter((step) => step.startsWith("resize"))).toEqual([]);
    expect(container(executionId).size).toEqual(sizeOf(resources));
  });

  test("of less memory than the pooled container uses is a cold start, and the pool keeps its container", async () => {
    const id = await pooled();
    const one = here.engine.containers.get(id);
    if (one !== undefined) one.memoryBytes = 230 * 2 ** 20;
    const { executionId, warm } = await start({ resources: SMALL });
    expect(warm).toBe(false);
    expect(container(executionId)).toMatchObject({ size: sizeOf(SMALL), limits: dockerLimits(SMALL) });
    expect(here.parts.pool.ids()).toEqual([id]);
    expect(one).toMatchObject({ size: sizeOf(resources), frozen: true });
  });

  test("prefers a container of its own size", async () => {
    here.parts.pool.setTargets([{ build, resources, size: 2 }]);
    await expect.poll(() => here.parts.pool.load()[0]?.ready).toBe(2);
    here.parts.pool.setFilling(false);
    const [first, second] = here.parts.pool.containers();
    if (first === undefined || second === undefined) throw new Error("the pool is empty");
    // As an earlier agent process left it, which pooled containers of another size.
    Object.assign(first, { resources: LARGE });
    const { executionId } = await start({});
    expect(container(executionId).id).toBe(second.id);
    const other = await start({});
    expect(container(other.executionId)).toMatchObject({ id: first.id, size: sizeOf(resources) });
  });

  test("whose kernel refuses the limit removes that container, and the sandbox starts cold with its size", async () => {
    const id = await pooled();
    here.failAt("resize");
    const { executionId, warm } = await start({ resources: SMALL });
    expect(warm).toBe(false);
    expect(container(executionId).size).toEqual(sizeOf(SMALL));
    await here.parts.settled();
    expect(here.engine.containers.has(id)).toBe(false);
    expect(here.parts.stores.containers.all()).toHaveLength(1);
  });

  test("that waits for a turn takes only a container that can become its size", async () => {
    here.parts = agentParts(here.engine, { coldAtOnce: 1, queueMs: 300 });
    let held: (() => void) | undefined;
    here.engine.fail((step) =>
      step === "create" && held === undefined ? new Promise<void>((go) => (held = go)) : undefined,
    );
    const first = start({});
    await expect.poll(() => held).toBeDefined();
    const second = start({ resources: SMALL }).catch((error: unknown) => error);
    const freeze = here.engine.containers;
    here.engine.fail((step) => {
      if (step === "warm") for (const one of freeze.values()) one.memoryBytes = 230 * 2 ** 20;
    });
    here.parts.pool.setTargets(targets);
    await expect.poll(() => here.parts.pool.load()[0]?.ready).toBe(1);
    expect(await second).toMatchObject({ code: "node_busy" });
    held?.();
    await first;
  });
});

describe("an agent that is cut off in a claim of another size", () => {
  const cutAt = async (step: string, executionId: string, body: ReturnType<typeof startRequest>) => {
    const reached = new Promise<void>((resolve) => {
      let cut = false;
      here.engine.fail((name) => {
        if (cut) return new Promise(() => undefined);
        if (name !== step) return undefined;
        cut = true;
        resolve();
        // Writing the limits cannot wait: it fails, and nothing that comes after it happens.
        if (name === "resize") throw new Error("cut");
        return new Promise(() => undefined);
      });
    });
    void here.parts.sandboxes.start(executionId, body).catch(() => undefined);
    await reached;
  };

  test.each(["resize", "init", "open"])(
    "at %s leaves no sandbox, and the repeated start has its size",
    async (step) => {
      await pooled();
      const [executionId, body] = [randomUUID(), startRequest({ resources: LARGE })];
      await cutAt(step, executionId, body);
      await takeOver();
      expect(here.parts.sandboxes.running()).toEqual([]);
      expect(here.engine.containers.size).toBe(0);
      await here.parts.sandboxes.start(executionId, body);
      expect(container(executionId).size).toEqual(sizeOf(LARGE));
      expect(here.parts.sandboxes.get(executionId)?.container.resources).toEqual(LARGE);
    },
  );

  test("after it leaves a sandbox of that size, in the kernel and in the next agent's records", async () => {
    await pooled();
    const { executionId } = await start({ resources: LARGE });
    await here.parts.stop();
    await takeOver();
    expect(here.parts.sandboxes.get(executionId)?.container.resources).toEqual(LARGE);
    expect(container(executionId).size).toEqual(sizeOf(LARGE));
  });
});

describe("a sandbox of another size than its pool", () => {
  const claimed = async (asked: typeof resources) => {
    await pooled();
    const executionId = randomUUID();
    const body = startRequest({ resources: asked });
    await here.parts.sandboxes.start(executionId, body);
    return { executionId, body };
  };

  test("is resumed with its size by a thaw", async () => {
    const sandbox = await claimed(LARGE);
    const { snapshotId } = await here.parts.taker.pause(sandbox.executionId, snapshotRequest());
    const next = randomUUID();
    const resumed = await here.parts.sandboxes.start(next, again(sandbox, snapshotId));
    expect(resumed.restored).toBe("frozen");
    expect(container(next).size).toEqual(sizeOf(LARGE));
  });

  test.each([true, false])(
    "is started again with its size, memory %j, although Docker had another one",
    async (memory) => {
      const sandbox = await claimed(LARGE);
      const { snapshotId } = await here.parts.taker.pause(sandbox.executionId, snapshotRequest());
      const [one] = here.engine.containers.values();
      if (one === undefined) throw new Error("the paused sandbox has no container");
      here.engine.die(one.id);
      await here.parts.stop();
      await takeOver();
      one.limits = dockerLimits(resources);
      const before = here.engine.steps.length;
      const next = randomUUID();
      await here.parts.sandboxes.start(next, again(sandbox, snapshotId, memory));
      expect(container(next).size).toEqual(sizeOf(LARGE));
      const steps = here.engine.steps.slice(before);
      expect(steps.indexOf("resize in Docker")).toBeGreaterThanOrEqual(0);
      expect(steps.indexOf("resize in Docker")).toBeLessThan(steps.indexOf("start"));
    },
  );

  test("is started again without a word to Docker, which knows its size", async () => {
    const sandbox = await claimed(resources);
    const { snapshotId } = await here.parts.taker.pause(sandbox.executionId, snapshotRequest());
    for (const one of here.engine.containers.values()) here.engine.die(one.id);
    await here.parts.stop();
    await takeOver();
    await here.parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId));
    expect(here.engine.steps).not.toContain("resize in Docker");
  });

  test("has copies of its size, or of another one that its memory fits", async () => {
    const { executionId } = await claimed(LARGE);
    const snapshotId = randomUUID();
    await here.parts.taker.checkpoint(executionId, { snapshotId, memory: true });
    const sizes = { memoryBytes: 600 * 2 ** 20, diskBytes: 0, takenAt: 1 };
    here.parts.stores.snapshots.keep(snapshotId, sizes, () => undefined);
    const copy = (asked: typeof resources, memory = true) =>
      start({ resources: asked, origin: { is: "snapshot", snapshotId, memory } });
    expect(container((await copy(LARGE)).executionId).size).toEqual(sizeOf(LARGE));
    const fitting = { ...resources, memoryMB: 632 };
    expect(container((await copy(fitting)).executionId).size).toEqual(sizeOf(fitting));
    await expect(copy({ ...resources, memoryMB: 631 })).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringMatching(/631 MiB is too small .* ask for at least 632 MiB .*memory: false/) as string,
    });
    const cold = await copy(SMALL, false);
    expect(cold.restored).toBe("disk");
    expect(container(cold.executionId).size).toEqual(sizeOf(SMALL));
  });
});
