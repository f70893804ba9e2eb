/** Resumes that fail, hang or are cut off at every step: afterwards the sandbox runs, or is paused as before. */

import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { agentParts, startRequest } from "../../../support/fakes/agent-parts.ts";
import { again, machineForEach, type Running, snapshotRequest } from "../machine.ts";

const here = machineForEach();
const { expectRunning, failAt, running, takeOver, vanishAt } = here;

describe("a resume", () => {
  const pausedCold = async () => {
    const sandbox = await running();
    const { snapshotId } = await here.parts.taker.pause(sandbox.executionId, snapshotRequest());
    const [container] = here.engine.containers.values();
    here.engine.die(container?.id ?? "");
    await here.parts.stop();
    await takeOver();
    return { sandbox, snapshotId };
  };
  const STEPS = [
    "annotations",
    "prepare connections",
    "memory annotations",
    "start",
    "inspect",
    "ready",
    "verify",
    "init",
    "open",
  ];

  test.each(STEPS)("from memory that fails at %s leaves it paused", async (step) => {
    const { sandbox, snapshotId } = await pausedCold();
    failAt(step);
    await expect(here.parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId))).rejects.toThrow();
    here.engine.fail(() => undefined);
    expect(here.parts.stores.executions.all()).toEqual([]);
    expect(here.parts.stores.snapshots.all()).toMatchObject([{ id: snapshotId, state: "stored" }]);
    expect(here.engine.containers.size).toBe(1);
    const resumed = await here.parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId));
    expect(resumed.restored).toBe("memory");
    expectRunning();
  });

  // `verify` is left out because it runs beside the other steps: an agent that is cut off in it is cut off at one of those.
  const CUTS = STEPS.filter((step) => step !== "verify");

  /** From these steps on the restored processes run, and they are the sandbox's memory. */
  const RESTORED = ["ready", "init", "open"];

  const cutResume = async (step: string, sandbox: Running, snapshotId: string, memory = true) => {
    const vanished = vanishAt(step);
    void here.parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId, memory)).catch(() => undefined);
    await vanished;
  };
  const onlyPid = () => [...here.engine.containers.values()].map(({ pid }) => pid)[0];
  /**
   * Expects a paused sandbox: the agent reports it as paused, no network reaches it, and its remaining processes are frozen.
   */
  const expectPaused = (snapshotId: string) => {
    expect(here.parts.sandboxes.running()).toEqual([]);
    expect(here.parts.snapshots.list()).toMatchObject([{ snapshotId, memory: true }]);
    expect([...here.engine.firewall.values()].filter(({ open }) => open)).toEqual([]);
    expect([...here.engine.containers.values()].filter((one) => one.running && !one.frozen)).toEqual([]);
  };

  test.each(CUTS)("from memory in which the agent is killed at %s leaves it paused", async (step) => {
    const { sandbox, snapshotId } = await pausedCold();
    await cutResume(step, sandbox, snapshotId);
    const pid = onlyPid();
    await takeOver();
    expectPaused(snapshotId);
    const resumed = await here.parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId));
    expect(resumed.restored).toBe(RESTORED.includes(step) ? "frozen" : "memory");
    if (RESTORED.includes(step)) expect(onlyPid()).toBe(pid);
    expectRunning();
    expect(here.engine.containers.size).toBe(1);
  });

  test.each(["init", "open"])("of a frozen one in which the agent is killed at %s loses nothing", async (step) => {
    const sandbox = await running();
    const { snapshotId } = await here.parts.taker.pause(sandbox.executionId, snapshotRequest());
    const pid = onlyPid();
    await cutResume(step, sandbox, snapshotId);
    await takeOver();
    expectPaused(snapshotId);
    expect((await here.parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId))).restored).toBe("frozen");
    expect(onlyPid()).toBe(pid);
    expectRunning();
  });

  test("that was interrupted keeps its processes over several restarts of the agent, also where frozen containers are evicted at once", async () => {
    const { sandbox, snapshotId } = await pausedCold();
    await cutResume("open", sandbox, snapshotId);
    const pid = onlyPid();
    await takeOver();
    const other = await running();
    await here.parts.taker.pause(other.executionId, snapshotRequest());
    await here.parts.stop();
    await takeOver({ frozenSeconds: 0 });
    // Eviction takes the other sandbox's frozen container in the same round.
    await expect.poll(() => [...here.engine.containers.values()].map((one) => one.running)).toEqual([true, false]);
    await cutResume("init", sandbox, snapshotId);
    await takeOver({ frozenSeconds: 0 });
    expect((await here.parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId))).restored).toBe("frozen");
    expect(onlyPid()).toBe(pid);
  });

  test("whose disk was booting when the agent was killed has the memory that was stored", async () => {
    const { sandbox, snapshotId } = await pausedCold();
    await cutResume("init", sandbox, snapshotId, false);
    await takeOver();
    expectPaused(snapshotId);
    expect((await here.parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId))).restored).toBe("memory");
  });

  test("from memory that is found damaged after the agent was killed ends the sandbox", async () => {
    const { sandbox, snapshotId } = await pausedCold();
    await cutResume("init", sandbox, snapshotId);
    await takeOver({}, (step) => {
      if (step === "verify") throw new Error("injected");
    });
    expectPaused(snapshotId);
    expect([...here.engine.containers.values()].map((one) => one.running)).toEqual([false]);
  });

  test.each([
    ["does not answer", ["init"]],
    ["has just died", ["init", "freeze"]],
  ] as const)("of a frozen container that %s restores the memory from the disk", async (_why, steps) => {
    const sandbox = await running();
    const { snapshotId } = await here.parts.taker.pause(sandbox.executionId, snapshotRequest());
    const left = new Set<string>(steps);
    here.engine.fail((name) => {
      if (left.delete(name)) throw new Error("injected");
    });
    expect((await here.parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId))).restored).toBe("memory");
    expectRunning();
  });

  test("of the same snapshot is refused a second time, and a later pause replaces the memory", async () => {
    const sandbox = await running();
    const { snapshotId } = await here.parts.taker.pause(sandbox.executionId, snapshotRequest());
    const executionId = randomUUID();
    await here.parts.sandboxes.start(executionId, again(sandbox, snapshotId));
    await expect(here.parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId))).rejects.toMatchObject({
      code: "conflict",
    });
    const next = await here.parts.taker.pause(executionId, snapshotRequest());
    await here.parts.snapshots.settled();
    expect(here.parts.snapshots.list().map((one) => one.snapshotId)).toEqual([next.snapshotId]);
    await here.parts.snapshots.delete(next.snapshotId);
    await here.parts.settled();
    expect(here.engine.containers.size).toBe(0);
  });
});

describe("restores that hang", () => {
  const stored = async () => {
    const { executionId } = await running();
    const { snapshotId } = await here.parts.taker.checkpoint(executionId, snapshotRequest());
    return { is: "snapshot" as const, snapshotId, memory: true };
  };

  test("leave a permit to the restores of another project, however many of them hang", async () => {
    await here.parts.stop();
    here.parts = agentParts(here.engine, { limits: { startLimitMs: 120_000 }, restoreLimitMs: 120_000 });
    const origin = await stored();
    const hung = { count: 0 };
    here.engine.fail((name) => {
      if (name !== "start") return undefined;
      hung.count += 1;
      return new Promise(() => undefined);
    });
    const hostile = Array.from({ length: 10 }, () => randomUUID());
    const copies = hostile.map((id) =>
      here.parts.sandboxes.start(id, startRequest({ origin, projectId: "hostile" })).catch(() => undefined),
    );
    await expect.poll(() => hung.count).toBeGreaterThanOrEqual(3);
    here.engine.fail(() => undefined);
    const other = await here.parts.sandboxes.start(randomUUID(), startRequest({ origin, projectId: "other" }));
    expect([other.restored, hung.count]).toEqual(["memory", 3]);
    await Promise.all(hostile.map((id) => here.parts.sandboxes.stop(id)));
    await Promise.all(copies);
  });

  test("refuse a copy as busy that has no turn in time; it leaves nothing, and starts when it is asked for again", async () => {
    await here.parts.stop();
    here.parts = agentParts(here.engine, { limits: { startLimitMs: 120_000 }, restoreLimitMs: 120_000, queueMs: 100 });
    const origin = await stored();
    const held: (() => void)[] = [];
    here.engine.fail((name) => (name === "start" ? new Promise<void>((go) => held.push(go)) : undefined));
    const copy = (id: string) => here.parts.sandboxes.start(id, startRequest({ origin, projectId: "p" }));
    const first = Array.from({ length: 3 }, () => copy(randomUUID()));
    await expect.poll(() => held.length).toBe(3);
    const before = here.engine.containers.size;
    const id = randomUUID();
    const body = startRequest({ origin, projectId: "p" });
    await expect(here.parts.sandboxes.start(id, body)).rejects.toMatchObject({
      code: "node_busy",
      message: "the node starts other sandboxes and had no turn for this one within 100 ms: try again",
    });
    expect([held.length, here.engine.containers.size]).toEqual([3, before]);
    here.engine.fail(() => undefined);
    for (const go of held) go();
    await Promise.all(first);
    expect((await here.parts.sandboxes.start(id, body)).restored).toBe("memory");
  });

  test.each(["start", "ready"])("are given up at %s, with the reason, and leave nothing", async (step) => {
    await here.parts.stop();
    here.parts = agentParts(here.engine, { restoreLimitMs: 200 });
    const origin = await stored();
    const before = here.engine.containers.size;
    here.engine.fail((name) => (name === step ? new Promise(() => undefined) : undefined));
    await expect(
      here.parts.sandboxes.start(randomUUID(), startRequest({ origin, projectId: "p" })),
    ).rejects.toMatchObject({
      code: "sandbox_create_failed",
      message:
        "the sandbox's memory could not be restored: the restore did not end within its limit of 0.2 s; " +
        "try again, or start from the disk alone (memory: false)",
    });
    here.engine.fail(() => undefined);
    expect(here.engine.containers.size).toBe(before);
  });
});
